#include "dlc/hw/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "dlc/hw/footprint.h"
#include "dlc/interp/interp.h"

namespace dlc {

namespace {

// One space at run time.
struct SpaceMemory {
  std::vector<std::byte> own;
  std::span<std::byte> bytes;
  std::vector<uint8_t> defined;  // per byte; empty when all are, or when not tracked
  bool bound = false;
};

int64_t next_random(std::mt19937_64& rng, int64_t below) {
  return static_cast<int64_t>(rng() % static_cast<uint64_t>(below));
}

}  // namespace

struct Simulator::Impl {
  const HwDescription& hw;
  SimOptions options;
  Footprints footprints;
  std::vector<SpaceMemory> spaces;
  std::vector<int64_t> words;                            // per space, for the footprints
  std::map<std::vector<int64_t>, PreparedKernel> cache;  // forms with their enumerated and one-bit fields put in
  std::vector<std::vector<SimWrite>> writes;

  Impl(const HwDescription& h, const SimOptions& o, Footprints f)
      : hw(h), options(o), footprints(std::move(f)), spaces(h.spaces.size()), words(h.spaces.size(), 0) {}

  void reset();
  void fill_reset(const HwState& s, SpaceMemory& m, std::mt19937_64& noise) const;
  Result<const PreparedKernel*> prepare(const HwInsn& insn, int form, const Instruction& i);
  Result<std::optional<SimFault>> execute(const Instruction& i, int64_t index);
  Result<> check_reads(const Instruction& i, int64_t index, const std::vector<Footprint>& accesses) const;
  Result<std::optional<SimFault>> run_kernel(const HwInsn& insn, const Instruction& i, SimFault fault);
  void record(int64_t index, int queue, const std::vector<Footprint>& accesses);
  Result<SimResult> run(std::span<const Instruction> program, const std::optional<SimFault>& at_end);
  SimFault make_fault(std::string cause, int64_t instruction, int queue, std::string detail) const {
    const int64_t code = hw.fault_code(cause).value_or(0);
    return {std::move(cause), code, instruction, queue, std::move(detail)};
  }
};

void Simulator::Impl::fill_reset(const HwState& s, SpaceMemory& m, std::mt19937_64& noise) const {
  const bool rom = s.kind == HwState::Kind::rom;
  if (!rom && !s.reset) {
    for (size_t i = 0; i < m.own.size(); i += 8) {
      const uint64_t r = noise();
      std::memcpy(m.own.data() + i, &r, std::min<size_t>(8, m.own.size() - i));
    }
  } else {
    const auto width = static_cast<size_t>(s.elem.dtype.bytes());
    for (size_t i = 0; i * width < m.own.size(); ++i) {
      const int64_t v = rom ? s.rom[i] : *s.reset;
      std::memcpy(m.own.data() + i * width, &v, width);
    }
  }
  if (options.track_undefined) m.defined.assign(m.own.size(), rom || s.reset ? 1 : 0);
}

void Simulator::Impl::reset() {
  std::mt19937_64 noise(options.seed ^ 0x9e3779b97f4a7c15u);
  for (size_t i = 0; i < spaces.size(); ++i) {
    const HwState& s = hw.state_of(static_cast<int>(i));
    if (s.kind == HwState::Kind::external) continue;
    SpaceMemory& m = spaces[i];
    m.own.resize(static_cast<size_t>(s.words * s.word_bytes()));
    m.bytes = m.own;
    m.bound = true;
    words[i] = s.words;
    fill_reset(s, m, noise);
  }
}

// Enumerated and one-bit fields become constants, so that their conditions vanish; the rest are parameters of the run.
Result<const PreparedKernel*> Simulator::Impl::prepare(const HwInsn& insn, int form, const Instruction& i) {
  std::vector<int64_t> key = {i.insn, form};
  Bindings bindings;
  for (size_t f = 0; f < insn.fields.size(); ++f) {
    const HwField& field = insn.fields[f];
    if (field.enumerators.empty() && field.width > 1) continue;
    if (field.name == hw.isa.opcode_field) continue;
    key.push_back(i.fields[f]);
    bindings.emplace(field.name, i.fields[f]);
  }
  const auto it = cache.find(key);
  if (it != cache.end()) return &it->second;
  const HwForm& fm = insn.forms[static_cast<size_t>(form)];
  DLC_TRY(PreparedKernel k, PreparedKernel::prepare(fm.kernel, bindings));
  return &cache.emplace(std::move(key), std::move(k)).first->second;
}

Result<> Simulator::Impl::check_reads(const Instruction& i, int64_t index,
                                      const std::vector<Footprint>& accesses) const {
  for (const Footprint& f : accesses) {
    const SpaceMemory& m = spaces[static_cast<size_t>(f.space)];
    if (f.write || m.defined.empty()) continue;
    for (const ByteRange& r : f.bytes) {
      const uint8_t* begin = m.defined.data() + r.begin;
      const auto* hit = static_cast<const uint8_t*>(std::memchr(begin, 0, static_cast<size_t>(r.end - r.begin)));
      if (!hit) continue;
      const int64_t at = r.begin + (hit - begin);
      return fail(
          {}, fmt::format("instruction {} ({}) reads {} at word {}, which was never written", index, disassemble(hw, i),
                          hw.spaces[static_cast<size_t>(f.space)].name, at / hw.state_of(f.space).word_bytes()));
    }
  }
  return {};
}

Result<std::optional<SimFault>> Simulator::Impl::run_kernel(const HwInsn& insn, const Instruction& i, SimFault fault) {
  const int form = find_form(insn, i.fields);
  DLC_TRY(const PreparedKernel* prepared, prepare(insn, form, i));
  const HwForm& fm = insn.forms[static_cast<size_t>(form)];
  Bindings parameters;
  for (size_t f = 0; f < insn.fields.size(); ++f) parameters.emplace(insn.fields[f].name, i.fields[f]);
  std::vector<Buffer> buffers(fm.operands.size());
  for (size_t t = 0; t < fm.operands.size(); ++t) {
    const int space = fm.operands[t].space_for(insn, i.fields);
    if (space < 0 || fm.kernel.tensors[t].view) continue;
    const SpaceMemory& m = spaces[static_cast<size_t>(space)];
    buffers[t] = {m.bytes.data(), static_cast<int64_t>(m.bytes.size())};
    parameters.emplace(fm.kernel.tensors[t].name + ".words", words[static_cast<size_t>(space)]);
  }
  if (auto r = prepared->run(buffers, parameters); !r) {
    fault.detail = std::string(r.error().message());
    return std::optional<SimFault>(std::move(fault));
  }
  return std::optional<SimFault>();
}

void Simulator::Impl::record(int64_t index, int queue, const std::vector<Footprint>& accesses) {
  std::map<int, ByteSet> written;
  for (const Footprint& f : accesses)
    if (f.write) written[f.space].insert(written[f.space].end(), f.bytes.begin(), f.bytes.end());
  for (auto& [space, set] : written) {
    normalise(set);
    const auto bytes = spaces[static_cast<size_t>(space)].bytes;
    for (const ByteRange& r : set) {
      const auto piece = bytes.subspan(static_cast<size_t>(r.begin), static_cast<size_t>(r.end - r.begin));
      writes[static_cast<size_t>(queue)].push_back({index, space, r.begin, {piece.begin(), piece.end()}});
    }
  }
}

Result<std::optional<SimFault>> Simulator::Impl::execute(const Instruction& i, int64_t index) {
  const HwInsn& insn = hw.isa.insns[static_cast<size_t>(i.insn)];
  if (insn.forms.empty()) return std::optional<SimFault>();
  const int queue = std::max(insn.queue, 0);
  DLC_TRY(const FootprintResult fp, footprints.of(i, words));
  if (fp.out) {
    const auto& o = *fp.out;
    return std::optional<SimFault>(
        make_fault("oob", index, queue,
                   fmt::format("{} {} words {} .. {}, which has {}", o.write ? "writes" : "reads",
                               hw.spaces[static_cast<size_t>(o.space)].name, o.lowest, o.highest, o.words)));
  }
  for (const Footprint& f : fp.accesses)
    if (const HwSpace& s = hw.spaces[static_cast<size_t>(f.space)]; f.write && !s.writable)
      return std::optional<SimFault>(make_fault("oob", index, queue, "writes " + s.name + ", which is read-only"));
  if (options.track_undefined) DLC_CHECK(check_reads(i, index, fp.accesses));
  if (options.track_undefined && fp.self)
    return fail({},
                fmt::format("instruction {} ({}) reads and writes {} words {} .. {} at different points of its loops",
                            index, disassemble(hw, i), hw.spaces[static_cast<size_t>(fp.self->space)].name,
                            fp.self->bytes.begin / hw.state_of(fp.self->space).word_bytes(),
                            (fp.self->bytes.end - 1) / hw.state_of(fp.self->space).word_bytes()));
  DLC_TRY(auto fault, run_kernel(insn, i, make_fault("oob", index, queue, "")));
  if (fault) return fault;
  for (const Footprint& f : fp.accesses) {
    auto& defined = spaces[static_cast<size_t>(f.space)].defined;
    if (!f.write || !f.exact || defined.empty()) continue;
    for (const ByteRange& r : f.bytes) std::memset(defined.data() + r.begin, 1, static_cast<size_t>(r.end - r.begin));
  }
  if (options.record_writes) record(index, queue, fp.accesses);
  return fault;
}

// `at_end` is the fault of the first word that could not be decoded: it is reported when fetch reaches it, which is
// after everything before it has been fetched.
Result<SimResult> Simulator::Impl::run(std::span<const Instruction> program, const std::optional<SimFault>& at_end) {
  QueueModel model(hw, program);
  std::mt19937_64 rng(options.seed);
  writes.assign(model.queues(), {});
  SimResult result;
  const auto stop = [&](std::optional<SimFault> fault) {
    result.fault = std::move(fault);
    for (size_t q = 0; q < model.queues(); ++q) result.epc.push_back(model.head(q));
    result.semaphores = model.semaphores();
    return result;
  };
  size_t favourite = 0;
  int64_t patience = 0;  // steps for which the favourite goes first, or last
  bool starve = false;
  while (!model.finished()) {
    std::vector<size_t> ready;
    for (size_t q = 0; q < model.queues(); ++q)
      if (model.ready(q)) ready.push_back(q);
    if (ready.empty()) {
      std::string heads;
      int64_t oldest = -1;
      for (size_t q = 0; q < model.queues(); ++q) {
        const int64_t h = model.head(q);
        if (h < 0) continue;
        if (oldest < 0 || h < oldest) oldest = h;
        heads += fmt::format("{}{}: {}", heads.empty() ? "" : "; ", hw.queues[q].name,
                             disassemble(hw, program[static_cast<size_t>(h)]));
      }
      if (oldest < 0) break;
      return stop(make_fault("watchdog", oldest, model.queue_of(oldest), "deadlock; queue heads " + heads));
    }
    size_t q = ready.front();
    if (options.seed != 0) {
      if (patience-- <= 0) {
        favourite = static_cast<size_t>(next_random(rng, static_cast<int64_t>(model.queues())));
        patience = next_random(rng, 24);
        starve = rng() % 2 == 0;
      }
      q = ready[static_cast<size_t>(next_random(rng, static_cast<int64_t>(ready.size())))];
      const bool can = std::find(ready.begin(), ready.end(), favourite) != ready.end();
      if (can && !starve) q = favourite;
      if (can && starve && q == favourite) q = ready[q == ready.front() ? ready.size() - 1 : 0];
    }
    const int64_t index = model.head(q);
    if (const auto other = model.claim(q))
      return stop(make_fault("sem", index, static_cast<int>(q),
                             fmt::format("semaphore {} is waited on by the queues {} and {}", other->semaphore,
                                         hw.queues[other->owner].name, hw.queues[q].name)));
    model.take(q);
    DLC_TRY(auto fault, execute(program[static_cast<size_t>(index)], index));
    if (fault) return stop(std::move(fault));
    if (!model.retire(q))
      return stop(make_fault("sem", index, static_cast<int>(q),
                             "a semaphore overflows: " + disassemble(hw, program[static_cast<size_t>(index)])));
    ++result.retired;
    result.order.push_back(index);
    model.fetch();
  }
  return stop(at_end);
}

Simulator::Simulator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

Result<Simulator> Simulator::make(const HwDescription& hw, const SimOptions& options) {
  if (hw.isa.word_bits == 0) return fail({hw.file, 0, 0, {}}, hw.name + " has no instruction words to simulate");
  DLC_TRY(Footprints f, Footprints::make(hw));
  Simulator s(std::make_unique<Impl>(hw, options, std::move(f)));
  s.reset();
  return s;
}

void Simulator::reset() { impl_->reset(); }

Result<> Simulator::bind(int space, std::span<std::byte> bytes, bool defined) {
  if (space < 0 || static_cast<size_t>(space) >= impl_->spaces.size()) return fail({}, "there is no such memory");
  const HwState& s = impl_->hw.state_of(space);
  const std::string& name = impl_->hw.spaces[static_cast<size_t>(space)].name;
  if (s.kind != HwState::Kind::external) return fail({}, name + " is not external memory");
  if (static_cast<int64_t>(bytes.size()) > s.words * s.word_bytes())
    return fail({}, fmt::format("{} bytes for {}, which holds {}", bytes.size(), name, s.words * s.word_bytes()));
  SpaceMemory& m = impl_->spaces[static_cast<size_t>(space)];
  m.bytes = bytes;
  m.bound = true;
  m.defined.clear();
  if (impl_->options.track_undefined && !defined) m.defined.assign(bytes.size(), 0);
  impl_->words[static_cast<size_t>(space)] = static_cast<int64_t>(bytes.size()) / s.word_bytes();
  return {};
}

std::span<std::byte> Simulator::memory(int space) { return impl_->spaces[static_cast<size_t>(space)].bytes; }
std::span<const std::byte> Simulator::memory(int space) const {
  return impl_->spaces[static_cast<size_t>(space)].bytes;
}

void Simulator::define(int space, int64_t begin, int64_t end) {
  auto& d = impl_->spaces[static_cast<size_t>(space)].defined;
  if (!d.empty()) std::fill(d.begin() + begin, d.begin() + end, uint8_t{1});
}

bool Simulator::is_defined(int space, int64_t begin, int64_t end) const {
  const auto& d = impl_->spaces[static_cast<size_t>(space)].defined;
  return d.empty() || std::find(d.begin() + begin, d.begin() + end, uint8_t{0}) == d.begin() + end;
}

Result<SimResult> Simulator::run(std::span<const Instruction> program) {
  for (size_t k = 0; k < program.size(); ++k)
    if (auto r = check_instruction(impl_->hw, program[k]); !r)
      return impl_->run(program.first(k),
                        impl_->make_fault("illegal", static_cast<int64_t>(k), -1, std::string(r.error().message())));
  return impl_->run(program, std::nullopt);
}

Result<SimResult> Simulator::run_words(std::span<const uint32_t> words) {
  const auto n = static_cast<size_t>(impl_->hw.isa.words32());
  if (words.size() % n != 0) return fail({}, fmt::format("{} words are no whole number of instructions", words.size()));
  std::vector<Instruction> program;
  for (size_t k = 0; k * n < words.size(); ++k) {
    auto i = decode(impl_->hw, words.subspan(k * n, n));
    if (!i)
      return impl_->run(program,
                        impl_->make_fault("illegal", static_cast<int64_t>(k), -1, std::string(i.error().message())));
    program.push_back(std::move(*i));
  }
  return impl_->run(program, std::nullopt);
}

void Simulator::record_writes(bool on) { impl_->options.record_writes = on; }

const std::vector<std::vector<SimWrite>>& Simulator::writes() const { return impl_->writes; }

}  // namespace dlc
