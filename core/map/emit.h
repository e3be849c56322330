// Emission: the chain of a call, tile by tile, as copies and instructions in an order that would be right one after
// another. What a tile needs is loaded where it is not there already.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/map/move.h"
#include "core/map/plan.h"
#include "core/map/ring.h"

namespace dlc::map {

// Where a buffer lies in external memory.
struct Place {
  int segment = -1;
  int64_t offset = 0;
};

// Tile sizes of a chain, and the order of the tiles.
struct Tiling {
  std::vector<int64_t> tile;     // per target loop
  std::vector<size_t> order;     // of the loops that are no reductions, outermost first
  int64_t cycles = 0;            // estimate, with the price of its instructions
  bool loads = false;            // loading takes longest
  std::map<int, int64_t> bytes;  // per on-chip space: of one tile
};

// The cheapest tiling that fits. Else which memory is too small, and by how much.
// `short_of_memory`: whether it failed because the smallest tile needs more of a memory than there is.
Result<Tiling> choose_tiling(const Machine& machine, const Chain& chain, const Loc& where, bool& short_of_memory);

// Boxes of the loops in `which`, in order, the last one fastest; others keep their part of `box`.
std::vector<Box> boxes(const Target& t, const std::vector<int64_t>& tile, const std::vector<size_t>& which,
                       const Box& box);
bool is_assigned(const Plan& plan, size_t loop);
int64_t constant_part(const Expr& e);

class Emitter {
 public:
  // `trial`: only to see whether it can be done; weights are not packed.
  Emitter(const Machine& machine, std::map<int, Place> places, bool trial = false)
      : machine_(machine), places_(std::move(places)), copier_(machine), trial_(trial) {}

  void begin_layer() { before_ = 0; }
  Result<> call(const Chain& chain, const Tiling& tiling, const Loc& where);  // or a part of one

  std::vector<Instruction> program;
  std::vector<int32_t> tiles;
  std::vector<std::byte> weights;
  bool short_of_memory = false;  // whether that is why a call failed

 private:
  // Constants with one base: they lie side by side as the instruction reads them.
  struct Group {
    int space = -1;
    Expr base;
    int64_t low = 0, high = 0;  // byte offsets against the base
    std::vector<size_t> members;
  };
  Result<> tile(const Tiling& tiling, const Box& box);
  Result<> issue(size_t plan, const Box& box, bool accumulate);
  Result<> store_result(const Plan& plan, const Box& box, int64_t address);
  Result<int64_t> load_data(const Operand& o, const Box& box);
  Result<Instruction> at_addresses(const Plan& plan, const Box& box, const std::vector<int64_t>& base, Instruction i,
                                   bool accumulate) const;
  std::string key_of(const Plan& plan, const Group& g, const Box& box) const;
  int64_t image(const Plan& plan, const Group& g, const Box& box, const Solved& shape, const std::string& key,
                int64_t size);
  Result<int64_t> load_group(const Plan& plan, const Group& g, const Box& box, const Solved& shape);
  std::vector<std::byte> image_of(const Plan& plan, const Group& g, const Box& box, const Solved& shape) const;
  std::vector<Group> groups(const Plan& plan, const Solved& shape) const;
  Result<const Solved*> shape_of(size_t plan, const Box& box, bool accumulate);
  Result<int64_t> allocate(int space, int64_t bytes, int64_t align, const std::string& key, bool for_tile);
  Ring& ring(int space);
  Result<> copy(const Copy& c);

  const Machine& machine_;
  std::map<int, Place> places_;
  std::map<int, Ring> rings_;
  std::map<std::string, int64_t> images_;  // content key -> offset in weights
  int64_t weight_bytes_ = 0;
  Copier copier_;
  const bool trial_;

  const Chain* chain_ = nullptr;
  Loc where_;
  int calls_ = 0;
  int32_t tile_ = 0;
  int32_t before_ = 0;                     // tiles of the layer's parts before this one
  std::vector<Box> tiles_;                 // of the call
  int64_t ahead_ = 0;                      // words that the first tile may wait for others' constants
  std::map<std::string, int64_t> loaded_;  // how many tiles of a group of constants
  std::vector<Placement> temps_;
  std::vector<int64_t> temp_address_;
  std::map<std::string, Solved> shapes_;
};

}  // namespace dlc::map
