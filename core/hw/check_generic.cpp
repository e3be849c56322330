#include "dlc/hw/check_generic.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/hw/reader.h"

namespace dlc {

namespace {

class GenericCheck {
 public:
  explicit GenericCheck(const HwDescription& hw) : hw_(hw) {}

  std::vector<Diagnostic> run() {
    machine();
    for (const HwInsn& i : hw_.isa.insns)
      for (const HwForm& f : i.forms) form(i, f);
    coverage();
    return std::move(out_);
  }

 private:
  void say(Severity severity, const Loc& loc, std::string message, std::string hint = "") {
    const bool known = std::any_of(out_.begin(), out_.end(),
                                   [&](const Diagnostic& d) { return d.message == message && d.loc.line == loc.line; });
    if (!known) out_.push_back({severity, loc, std::move(message), std::move(hint)});
  }
  void error(const Loc& loc, std::string message) { say(Severity::error, loc, std::move(message)); }
  // The section, or the line that promises it.
  Loc at(std::string_view section) const {
    return hw_.places.contains(section) ? hw_.place(section) : hw_.place("family");
  }

  void machine() {
    if (hw_.family != "queue_machine/1") error(at("family"), "'family' is not queue_machine/1");
    if (hw_.isa.word_bits == 0) error(at("isa"), "'isa' has no instruction words");
    if (hw_.queues.empty()) error(at("queues"), "there are no queues");
    if (!hw_.sync)
      error(at("sync"), "'sync' is missing: queues cannot be ordered");
    else if (!hw_.sync->tokens() && !hw_.state[static_cast<size_t>(hw_.sync->object)].one_waiting_queue)
      error(hw_.state[static_cast<size_t>(hw_.sync->object)].loc,
            "semaphores need 'waiters: one_queue', on which the proof of deadlock-freedom stands");
    if (hw_.isa.transport != "fetch") error(at("isa"), "'container' must say 'transport: fetch'");
    const bool external = std::any_of(hw_.state.begin(), hw_.state.end(),
                                      [](const HwState& s) { return s.kind == HwState::Kind::external; });
    if (!external) error(at("state"), "'state' has no external memory with segments");
    for (const char* cause : {"illegal", "oob", "sem", "watchdog"})
      if (!hw_.fault_code(cause)) {
        const std::string near = nearest(cause, names_of(hw_.faults));
        say(Severity::error, near.empty() ? at("faults") : hw_.place("faults." + near),
            fmt::format("'causes' of 'faults' has no '{}', which a device must be able to report", cause),
            near.empty() ? "" : fmt::format("call '{}' so?", near));
      }
  }

  // Stores must go to addresses that are affine in the loops; a read that is not is a table look-up.
  void form(const HwInsn& insn, const HwForm& f) {
    bool reads_external = false, writes_external = false, reads_chip = false, writes_chip = false, sums = false;
    const auto external = [&](int tensor) {
      const HwOperand& o = f.operands[static_cast<size_t>(tensor)];
      int space = o.space;
      if (o.selector >= 0)
        for (const HwEnumerator& e : insn.fields[static_cast<size_t>(o.selector)].enumerators)
          if (e.space >= 0) space = e.space;
      return space >= 0 && hw_.state_of(space).kind == HwState::Kind::external;
    };
    const auto read = [&](const ValNode& n) {
      if (n.kind == ValKind::reduce && n.reduce_op() == ReduceOp::sum) sums = true;
      if (n.kind != ValKind::read) return;
      (external(n.tensor) ? reads_external : reads_chip) = true;
    };
    walk(f.kernel.body, [&](const Stmt& s) {
      if (s.kind == Stmt::Kind::seq) {
        say(Severity::warning, insn.loc,
            fmt::format("insn '{}' has a sequential loop: it is simulated, and never chosen", insn.name));
        return;
      }
      (external(s.tensor) ? writes_external : writes_chip) = true;
      for (const Val& i : s.indices)
        if (!affine_index(s, i))
          error(insn.loc, fmt::format("insn '{}' stores to '{}' at an address that is not affine in its loops",
                                      insn.name, f.kernel.tensors[static_cast<size_t>(s.tensor)].name));
      walk(s.value, read);
    });
    loads_ |= reads_external && writes_chip;
    stores_ |= reads_chip && writes_external;
    contracts_ |= sums && reads_chip;
  }

  static bool affine_index(const Stmt& s, const Val& index) {
    const auto e = val::as_expr(index);
    std::vector<std::string> vars;
    for (const Loop& l : s.loops) vars.push_back(l.var);
    return e && affine(*e, vars).has_value();
  }

  void coverage() {
    if (!loads_) error(at("isa"), "no instruction moves data from external to on-chip memory");
    if (!stores_) error(at("isa"), "no instruction moves data from on-chip to external memory");
    if (std::ranges::none_of(hw_.isa.insns, [](const HwInsn& i) { return i.forms.empty(); }))
      error(at("isa"), "no instruction ends a program: one with neither 'does' nor 'stages' nor 'variants'");
    if (!contracts_) error(at("isa"), "no instruction sums products of on-chip data");
  }

  const HwDescription& hw_;
  std::vector<Diagnostic> out_;
  bool loads_ = false, stores_ = false, contracts_ = false;
};

}  // namespace

std::vector<Diagnostic> check_generic(const HwDescription& hw) { return GenericCheck(hw).run(); }

}  // namespace dlc
