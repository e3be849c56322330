// Plan: one instruction that does a part of a call, its loops assigned to loops of the kernel and its operands to
// buffers, constants and results of other instructions. A chain of plans does the whole call, tile by tile.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/map/target.h"
#include "core/map/unify.h"
#include "dlc/program/refusal.h"

namespace dlc::map {

enum class OperandKind : uint8_t { data, constant, temp };

// Index of one dim over the target's loops: base + sum coefficients[l] * loop l, all numbers.
struct Line {
  int64_t base = 0;
  std::vector<int64_t> coefficients;
};

// One access of the instruction.
struct Operand {
  OperandKind kind = OperandKind::data;
  int tensor = -1;  // data, constant: of the target's kernel; -1: a literal
  int temp = -1;    // temp: index of the plan that makes it
  int64_t literal = 0;
  int space = -1;           // on-chip memory
  Address address;          // of the pattern
  DType element = kS8;      // as the instruction sees it
  std::vector<Expr> index;  // data, constant: over the target's loops; a look-up's own index is "data"
  std::vector<bool> walks;  // per target loop: it is another element (of a temp: another value) from point to point
  std::vector<Line> lines;  // the same where every index is affine in loops alone; otherwise empty

  void set_index(const Target& t, std::vector<Expr> at);
};

struct Plan {
  const Pattern* pattern = nullptr;
  FieldSolver fields;                     // what matching has found
  std::optional<FieldSolver> accumulate;  // the same, added to what is there
  std::vector<Val> guards;                // of the pattern: where its elements are none of its padding
  std::vector<int> assign;                // per loop of the pattern: index of the target's loop, or -1
  std::vector<Operand> reads;
  Operand store;
  Val value;               // what it computes, of the target
  std::vector<bool> uses;  // per target loop: the value depends on it
  int64_t cost = 0;        // cycles of the whole call by this instruction, roughly
  explicit Plan(const Pattern& p) : pattern(&p), fields(p.fields), value(p.stmt().value) {}
};

// The part of the loops that one instruction covers.
struct Box {
  std::vector<int64_t> offset, extent;  // per target loop
};

// Strides of an operand in bytes per target loop, and how many bytes it covers.
struct Placement {
  std::vector<int64_t> strides;
  int64_t bytes = 0;
};

// The region of a blocked buffer that a box touches: per dim of its layout, in words.
struct Region {
  std::vector<int64_t> base, extent;
  std::vector<bool> may_leave;  // the region goes outside the buffer in this dim
  std::vector<int64_t> step;    // every so many words of the dim are in it
  int64_t words = 1;
};
std::optional<Region> region_of(const Target& t, const Operand& o, const Layout& layout, const Box& box);
// Strides of that region where it lies densely on chip.
std::optional<Placement> placement_of(const Target& t, const Operand& o, const Layout& layout, const Box& box);

struct Chain {
  std::shared_ptr<const Target> target;
  std::vector<Layout> layouts;  // per tensor of the target: data
  std::vector<Plan> plans;      // in order; the last stores the result
};

std::vector<Layout> layouts_of(const Target& t, int64_t lanes);  // per tensor

// The cheapest chain.
std::optional<Chain> make_chain(const Machine& machine, std::shared_ptr<const Target> target);
// The chain of the same instructions with the same loops as the one of a target that is like this one.
std::optional<Chain> make_chain_like(const Machine& machine, std::shared_ptr<const Target> target,
                                     const std::vector<Plan>& like);
// What stands in the way of one: the first condition of the nearest instruction that fails; or, where the call alone
// begins or ends in a memory that nothing is copied to or from, that memory, with one of these rules.
constexpr std::string_view kNeedsProducer = "needs its producer", kNeedsReader = "needs its reader";
Refusal why_no_chain(const Machine& machine, const std::shared_ptr<const Target>& target);

// The read of plan `p` in whose place its result may lie (`stores`: where the results of the plans lie): what it reads
// there is in the same memory and of the same form, and nobody reads it afterwards. -1: none.
int in_place(const Chain& chain, size_t p, const std::vector<Placement>& stores, const Placement& store);

// Fields of `plan` for a box. base[i]: byte address of reads[i]; the last: of the store. temp strides come from
// `temps`, by plan; *placed receives where constants and the result go.
struct Solved {
  Instruction instruction;
  std::vector<Placement> reads;
  Placement store;
};
std::optional<Solved> solve(const Machine& machine, const Chain& chain, const Plan& plan, const Box& box,
                            std::span<const int64_t> base, const std::vector<Placement>& temps, bool accumulate,
                            std::string* why);

}  // namespace dlc::map
