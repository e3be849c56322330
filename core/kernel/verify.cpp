// The structural rules of a kernel. Each refusal names the tensor or statement and what to do about it.
#include <fmt/format.h>

#include <set>

#include "dlc/kernel/kernel.h"
#include "dlc/kernel/names.h"
#include "points.h"

namespace dlc {

namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& k) : k_(k) {}

  Result<> run() {
    DLC_CHECK(tensors());
    DLC_CHECK(operands());
    collect_names();
    DLC_CHECK(statements(k_.body, {}, false));
    return outputs_written();
  }

 private:
  using Names = std::set<std::string, std::less<>>;

  std::unexpected<Error> refuse(std::string message, std::string hint = {}) const {
    return fail({}, fmt::format("kernel @{}: {}", k_.name, message), std::move(hint));
  }
  const KernelTensor& tensor(int i) const { return k_.tensors[static_cast<size_t>(i)]; }
  bool is_tensor(int i) const { return i >= 0 && static_cast<size_t>(i) < k_.tensors.size(); }

  // ---- tensors and operands
  Result<> tensors() {
    Names names;
    for (size_t i = 0; i < k_.tensors.size(); ++i) {
      const KernelTensor& t = k_.tensors[i];
      if (t.name.empty()) return refuse(fmt::format("tensor {} has no name", i));
      if (!names.insert(t.name).second) return refuse("two tensors are named " + t.name);
      for (const Expr& d : t.shape) {
        if (!d.valid()) return refuse("a dim of " + t.name + " overflows 64 bits");
        if (d.constant().value_or(0) < 0)
          return refuse(fmt::format("{} has the negative dim {}", t.name, to_string(d)));
      }
      if (t.view) DLC_CHECK(view(static_cast<int>(i)));
    }
    return {};
  }

  Result<> view(int i) {
    const KernelTensor& t = tensor(i);
    // Views come after their base, so that a chain of them ends.
    if (t.view->base < 0 || t.view->base >= i) return refuse("view " + t.name + " must come after the tensor it views");
    if (t.view->byte_strides.size() != t.shape.size())
      return refuse(
          fmt::format("view {} has {} dims and {} strides", t.name, t.shape.size(), t.view->byte_strides.size()));
    bool valid = t.view->byte_offset.valid();
    for (const Expr& s : t.view->byte_strides) valid = valid && s.valid();
    if (!valid) return refuse("the address of view " + t.name + " overflows 64 bits");
    return {};
  }

  Result<> operands() {
    for (int i : k_.inputs) {
      if (i == -1) continue;
      if (!is_tensor(i)) return refuse(fmt::format("input {} is no tensor", i));
      const Role r = tensor(i).role;
      if (r == Role::output || r == Role::temp)
        return refuse(fmt::format("input {} is declared '{}'", tensor(i).name, to_string(r)));
    }
    for (int i : k_.outputs) {
      if (!is_tensor(i)) return refuse(fmt::format("output {} is no tensor", i));
      const Role r = tensor(i).role;
      if (r != Role::output && r != Role::state)
        return refuse(fmt::format("output {} is declared '{}'", tensor(i).name, to_string(r)));
    }
    return {};
  }

  // The tensor whose bytes i lies in.
  int root(int i) const {
    while (tensor(i).view) i = tensor(i).view->base;
    return i;
  }

  Result<> outputs_written() {
    for (int i : k_.outputs)
      if (const Role r = tensor(root(i)).role; (r == Role::output || r == Role::temp) && !written_.contains(root(i)))
        return refuse("output " + tensor(i).name + " is never written");
    return {};
  }

  // ---- names
  void collect_names() {
    const auto add_symbols = [&](const Expr& e) {
      for (auto& s : e.symbols()) dims_.insert(s);
    };
    for (const KernelTensor& t : k_.tensors) {
      for (const Expr& d : t.shape) add_symbols(d);
      if (!t.view) continue;
      add_symbols(t.view->byte_offset);
      for (const Expr& s : t.view->byte_strides) add_symbols(s);
    }
    for (const Expr& a : k_.assumptions) add_symbols(a);
    walk(k_.body, [&](const Stmt& s) {
      for (const Loop& l : s.loops) loop_names_.insert(l.var);
      if (!s.value) return;
      walk(s.value, [&](const ValNode& v) {
        for (const Loop& l : v.loops) loop_names_.insert(l.var);
      });
    });
  }

  Result<Names> enter(const std::vector<Loop>& loops, const Names& outer, const std::string& where) const {
    Names inner = outer;
    for (const Loop& l : loops) {
      if (!is_identifier(l.var) || is_reserved_word(l.var))
        return refuse(fmt::format("{}: '{}' cannot name a loop", where, l.var));
      if (!inner.insert(l.var).second || dims_.contains(l.var))
        return refuse(fmt::format("{}: loop {} hides another loop or dim of that name", where, l.var));
      if (!l.extent.valid()) return refuse(fmt::format("{}: the extent of loop {} overflows 64 bits", where, l.var));
    }
    for (const Loop& l : loops)
      for (const auto& s : l.extent.symbols())
        if (loop_names_.contains(s))
          return refuse(fmt::format("{}: the extent of loop {} depends on loop {}", where, l.var, s));
    return inner;
  }

  // ---- statements
  Result<> statements(const std::vector<Stmt>& body, const Names& outer, bool in_seq) {
    if (in_seq)  // an earlier iteration may have written what a later statement writes
      walk(body, [&](const Stmt& s) {
        if (s.kind == Stmt::Kind::assign && is_tensor(s.tensor)) written_.insert(root(s.tensor));
      });
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::seq) {
        if (s.loops.empty()) return refuse("a seq has no loops");
        if (s.step != 1 && s.step != -1) return refuse(fmt::format("a seq steps by 1 or -1, not {}", s.step));
        DLC_TRY(const Names names, enter(s.loops, outer, "seq"));
        seqs_.insert(seqs_.end(), s.loops.begin(), s.loops.end());
        DLC_CHECK(statements(s.body, names, true));
        seqs_.resize(seqs_.size() - s.loops.size());
      } else {
        DLC_CHECK(assignment(s, outer));
      }
    }
    return {};
  }

  Result<> assignment(const Stmt& s, const Names& outer) {
    if (!is_tensor(s.tensor))
      return refuse(fmt::format("a statement writes tensor {}, which does not exist", s.tensor));
    const KernelTensor& t = tensor(s.tensor);
    const std::string where = "statement of " + t.name;
    if (t.role == Role::input || t.role == Role::constant)
      return refuse(fmt::format("{} is declared '{}' and cannot be written", t.name, to_string(t.role)));
    if (!s.value) return refuse(where + " has no value");
    if (!s.body.empty()) return refuse(where + " has a body; only a seq has one");
    if (s.indices.size() != t.shape.size())
      return refuse(fmt::format("{} has {} dims, written with {} indices", t.name, t.shape.size(), s.indices.size()));
    DLC_TRY(const Names names, enter(s.loops, outer, where));
    for (const Val& i : s.indices) {
      if (i->type != kS64) return refuse(fmt::format("{}: index of type {}, must be s64", where, to_string(i->type)));
      DLC_CHECK(value(i, names, where));
    }
    DLC_CHECK(value(s.value, names, where));
    if (s.value->type != compute_type(t.dtype))
      return refuse(
          fmt::format("{}: a value of type {} is stored to {}", where, to_string(s.value->type), to_string(t.dtype)),
          "convert it to " + to_string(compute_type(t.dtype)));
    DLC_CHECK(independent(s, where));
    written_.insert(root(s.tensor));
    return {};
  }

  Result<> independent(const Stmt& s, const std::string& where) const {
    const auto found = dependent_read(k_, s, seqs_);
    if (!found) return {};
    return refuse(fmt::format("{} reads {}, {} another point of its loops may write", where, print(found->read, k_),
                              found->own ? "which" : "an element that"),
                  "the points of a 'for' are independent; where their order matters, make a loop a 'seq'");
  }

  Result<> value(const Val& v, const Names& names, const std::string& where) {
    if (!v) return refuse(where + " has an empty operand");
    for (const Val& a : v->args)
      if (!a) return refuse(where + " has an empty operand");
    if (const std::string wrong = type_error(*v); !wrong.empty()) return refuse(where + ": " + wrong);
    if (v->kind == ValKind::index)
      for (const auto& s : v->index.symbols())
        if (loop_names_.contains(s) && !names.contains(s) && !dims_.contains(s))
          return refuse(fmt::format("{}: loop variable {} is not bound here", where, s));
    if (v->kind == ValKind::read) DLC_CHECK(read(*v, where));
    if (v->kind == ValKind::reduce) {
      DLC_TRY(const Names inner, enter(v->loops, names, where));
      return value(v->args[0], inner, where);
    }
    for (const Val& a : v->args) DLC_CHECK(value(a, names, where));
    return {};
  }

  Result<> read(const ValNode& v, const std::string& where) {
    if (!is_tensor(v.tensor)) return refuse(fmt::format("{} reads tensor {}, which does not exist", where, v.tensor));
    const KernelTensor& t = tensor(v.tensor);
    if (v.args.size() != t.shape.size())
      return refuse(
          fmt::format("{}: {} has {} dims, read with {} indices", where, t.name, t.shape.size(), v.args.size()));
    if (v.type != compute_type(t.dtype))
      return refuse(
          fmt::format("{}: {} of type {} is read as {}", where, t.name, to_string(t.dtype), to_string(v.type)));
    const Role role = tensor(root(v.tensor)).role;
    if ((role == Role::temp || role == Role::output) && !written_.contains(root(v.tensor)))
      return refuse(fmt::format("{}: {} is read before any statement writes it", where, t.name));
    return {};
  }

  const Kernel& k_;
  Names dims_;              // symbols of shapes, views and assumptions
  Names loop_names_;        // of every loop in the kernel
  std::vector<Loop> seqs_;  // around the current statement
  std::set<int> written_;   // roots of tensors written so far
};

}  // namespace

Result<> verify(const Kernel& k) { return Verifier(k).run(); }

}  // namespace dlc
