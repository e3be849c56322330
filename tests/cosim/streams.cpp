#include "tests/cosim/streams.h"

#include <map>
#include <random>
#include <string>

#include "dlc/hw/footprint.h"
#include "dlc_test/catch.h"

namespace dlc::cosim {
namespace {

class Generator {
 public:
  Generator(const HwDescription& hw, uint64_t seed, int64_t segment_bytes)
      : hw_(hw), random_(seed), footprints_(Footprints::make(hw)), lanes_(*hw.param("C")) {
    if (!footprints_) FAIL(to_string(footprints_.error()));
    for (size_t s = 0; s < hw.spaces.size(); ++s) {
      const HwState& state = hw.state_of(static_cast<int>(s));
      words_.push_back(state.kind == HwState::Kind::external ? segment_bytes : state.words);
      const bool partly = state.name == "in" || state.name == "w";  // only what define_memories() fills
      limit_.push_back(partly ? kRegion * state.elem.bytes() : words_.back() * state.elem.bytes());
    }
  }

  std::vector<Instruction> run(int length) {
    define_memories();
    while (length > 0) length -= add(draw()) ? 1 : 0;
    add(text("end"));
    return std::move(program_);
  }

 private:
  using Fields = std::map<std::string, int64_t>;

  int64_t in(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }
  bool one_in(int64_t n) { return in(1, n) == 1; }

  Instruction text(const std::string& line) {
    const auto p = assemble(hw_, line);
    if (!p) FAIL(to_string(p.error()));
    return p->front();
  }
  Instruction make(const char* name, const Fields& fields) {
    Instruction i = make_instruction(hw_, hw_.isa.find(name));
    for (const auto& [field, value] : fields)
      if (auto r = set_field(hw_, i, field, value); !r) FAIL(to_string(r.error()));
    return i;
  }

  // Every word of every memory is written once, so that nothing undefined is read.
  void define_memories() {
    const auto fill = [&](const char* to, int64_t words, const char* seg) {
      for (int64_t at = 0; at < words; at += 1024)
        add(text("ld to=" + std::string(to) + " seg=" + seg + " off=" + std::to_string(at * lanes_ % 0x8000) +
                 " sp=" + std::to_string(at) + " nx=" + std::to_string(std::min<int64_t>(words - at, 256)) +
                 " ny=" + std::to_string((std::min<int64_t>(words - at, 1024) + 255) / 256) + " sy=256 y1=4 x1=256"));
    };
    fill("in", kRegion, "arena");
    fill("w", kRegion, "weights");
    fill("out", *hw_.param("OUT_W"), "arena");
    fill("par", *hw_.param("PAR_W"), "weights");
    fill("tab", *hw_.param("SLOTS") * 256 / lanes_, "weights");
    const int64_t acc = *hw_.param("ACC_W");
    add(make("mac", {{"wdir", 2}, {"n_ow", acc}, {"s_ow", 0}, {"n_kw", 3}, {"s_kw", 1}}));
  }

  Instruction draw() {
    switch (in(0, 9)) {
      case 0:
      case 1:
        return draw_ld();
      case 2:
      case 3:
      case 4:
        return draw_mac();
      case 5:
      case 6:
        return draw_vec();
      case 7:
        return one_in(2) ? draw_vec2() : one_in(3) ? draw_norm() : draw_row();
      default:
        return draw_st();
    }
  }

  Instruction draw_ld() {
    const int64_t to = in(0, 4);
    const int64_t nx = in(1, 24), ny = in(1, 5), nz = in(1, 3);
    return make("ld", {{"to", to},
                       {"seg", in(1, 4)},
                       {"off", in(0, 2000) * lanes_},
                       {"sp", in(0, to < 2    ? kRegion
                                    : to == 4 ? 1024 / lanes_
                                              : 1024)},
                       {"nx", nx},
                       {"ny", ny},
                       {"nz", nz},
                       {"sy", in(-30, 60)},
                       {"sz", in(-100, 300)},
                       {"y0", one_in(2) ? 0 : in(-3, 3)},
                       {"y1", one_in(2) ? ny : in(0, 6)},
                       {"x0", one_in(2) ? 0 : in(-3, 3)},
                       {"x1", one_in(2) ? nx : in(0, 26)},
                       {"fill", in(-128, 127)}});
  }

  Instruction draw_st() {
    return make("st", {{"seg", in(3, 4)},
                       {"off", in(0, 2000) * lanes_},
                       {"sp", in(0, 1900)},
                       {"nx", in(1, 40)},
                       {"ny", in(1, 4)},
                       {"nz", in(1, 3)},
                       {"sy", in(40, 90)},
                       {"sz", in(400, 500)}});
  }

  Instruction draw_mac() {
    const int64_t wdir = in(0, 3);
    Fields f = {{"accum", in(0, 1)},
                {"wdir", wdir},
                {"zin", in(-128, 127)},
                {"in_base", in(100, kRegion - 100)},
                {"w_base", in(0, kRegion - 200)},
                {"acc_base", in(0, 2047)},
                {"n_ow", in(1, 9)},
                {"n_oh", in(1, 4)},
                {"n_kw", in(1, 3)},
                {"n_kh", in(1, 3)},
                {"n_ci", in(1, 2)},
                {"s_ow", in(-2, 3)},
                {"s_oh", in(-12, 12)},
                {"s_kw", in(-2, 2)},
                {"s_kh", in(-11, 11)},
                {"s_ci", in(-40, 40)},
                {"zw", one_in(2) ? 0 : in(-128, 127)}};
    if (wdir == 3) f["s_ow"] = f["s_kw"] * in(1, 2);
    return make("mac", f);
  }

  Instruction draw_vec() {
    const bool window = one_in(2);
    return make("vec", {{"a", in(0, 2)},
                        {"scl", in(0, 1)},
                        {"red", in(0, 1)},
                        {"lut", in(0, 1)},
                        {"slot", in(0, 3)},
                        {"dst", in(0, 1)},
                        {"a_base", in(0, kRegion)},
                        {"d_base", in(0, kRegion)},
                        {"p_base", in(0, 1015)},
                        {"n_ow", in(1, 9)},
                        {"n_oh", in(1, 5)},
                        {"n_kw", window ? in(1, 5) : 1},
                        {"n_kh", window ? in(1, 4) : 1},
                        {"s_ow", in(0, 3)},
                        {"s_oh", in(0, 20)},
                        {"s_kw", in(0, 3)},
                        {"s_kh", in(0, 20)},
                        {"d_ow", in(0, 2)},
                        {"d_oh", in(0, 20)},
                        {"za", in(-128, 127)},
                        {"zp", in(-128, 127)},
                        {"lo", in(-128, 127)},
                        {"hi", in(-128, 127)},
                        {"ma", one_in(3) ? in(0, 5) : in(0, 0x7fffffff)},
                        {"sh", in(0, 63)}});
  }

  Instruction draw_vec2() {
    return make("vec2", {{"a", in(0, 1)},
                         {"b", in(0, 1)},
                         {"bop", in(0, 1)},
                         {"lut", in(0, 1)},
                         {"slot", in(0, 3)},
                         {"dst", in(0, 1)},
                         {"a_base", in(0, kRegion)},
                         {"b_base", in(0, kRegion)},
                         {"d_base", in(0, kRegion)},
                         {"n_ow", in(1, 9)},
                         {"n_oh", in(1, 5)},
                         {"a_ow", in(0, 2)},
                         {"a_oh", in(0, 20)},
                         {"b_ow", in(0, 2)},
                         {"b_oh", in(0, 20)},
                         {"d_ow", in(1, 2)},
                         {"d_oh", in(0, 20)},
                         {"za", in(-128, 127)},
                         {"zb", in(-128, 127)},
                         {"zp", in(-128, 127)},
                         {"lo", in(-128, 0)},
                         {"hi", in(0, 127)},
                         {"ma", in(0, 0xffffff)},
                         {"mb", in(-0x800000, 0x7fffff)},
                         {"sh", in(0, 40)}});
  }

  Instruction draw_row() {
    const int64_t f = in(0, 2), n_k = f == 1 ? 1 : in(1, 6);
    return make("row", {{"f", f},
                        {"a", in(0, 1)},
                        {"dst", in(0, 1)},
                        {"a_base", in(0, kRegion)},
                        {"b_base", in(0, 1900)},
                        {"d_base", in(0, f == 2 ? 1900 : kRegion)},
                        {"n_ow", in(1, 9)},
                        {"n_oh", in(1, 5)},
                        {"n_k", n_k},
                        {"n", (n_k - 1) * lanes_ + in(1, lanes_)},
                        {"a_ow", in(0, 2)},
                        {"a_oh", in(0, 20)},
                        {"a_k", in(0, 20)},
                        {"b_ow", in(0, 2)},
                        {"b_oh", in(0, 20)},
                        {"d_ow", in(0, 2)},
                        {"d_oh", in(0, 20)},
                        {"za", in(-128, 127)},
                        {"zp", in(-128, 127)},
                        {"lo", in(-128, 127)},
                        {"hi", in(-128, 127)},
                        {"sh", f == 2 ? in(0, 20) : in(20, 60)},
                        {"ma", one_in(3) ? in(0, 5) : in(0, 0xffff)}});
  }

  Instruction draw_norm() {
    return make("norm", {{"a", in(0, 1)},
                         {"dst", in(0, 1)},
                         {"a_base", in(0, kRegion)},
                         {"b_base", in(0, 1900)},
                         {"c_base", in(0, 1900)},
                         {"d_base", in(0, kRegion)},
                         {"p_base", in(0, 1000)},
                         {"n_ow", in(1, 7)},
                         {"n_k", in(1, 6)},
                         {"a_ow", in(0, 2)},
                         {"a_k", in(0, 20)},
                         {"b_ow", in(0, 2)},
                         {"c_ow", in(0, 2)},
                         {"d_ow", in(0, 2)},
                         {"d_k", in(0, 20)},
                         {"za", in(-128, 127)},
                         {"zp", in(-128, 127)},
                         {"lo", in(-128, 0)},
                         {"hi", in(0, 127)},
                         {"mb", one_in(3) ? in(0, 0xffffff) : int64_t{1} << in(0, 23)},
                         {"sh", in(10, 40)}});
  }

  // Appends i with the waits that its conflicts need; false when it is illegal, leaves a memory, or reads at one point
  // of its loops what it writes at another.
  bool add(Instruction i) {
    if (!check_instruction(hw_, i)) return false;
    const auto touched = footprints_->of(i, words_);
    if (!touched) FAIL(to_string(touched.error()));
    if (touched->out) return false;
    for (const Footprint& a : touched->accesses)
      if (!a.bytes.empty() && a.bytes.back().end > limit_[static_cast<size_t>(a.space)]) return false;
    for (const Footprint& r : touched->accesses)
      for (const Footprint& w : touched->accesses)
        if (!r.write && w.write && r.space == w.space && !in_place(i) && first_overlap(r.bytes, w.bytes)) return false;
    const int queue = hw_.isa.insns[static_cast<size_t>(i.insn)].queue;
    for (int other = 0; other < kQueues; ++other) {
      if (other == queue) continue;
      const int latest = latest_conflict(other, touched->accesses);
      int& synced = synced_[other][queue];
      if (latest <= synced) continue;  // queue already waited for this one or a later one
      synced = latest;
      const int64_t bit = int64_t{1} << (other * 3 + (queue > other ? queue - 1 : queue));
      flip(program_[static_cast<size_t>(latest)], "sig", bit);
      flip(i, "wai", bit);
    }
    program_.push_back(i);
    touched_.push_back(std::move(touched->accesses));
    return true;
  }

  // mac with accum reads and writes the same word at the same point
  bool in_place(const Instruction& i) const { return hw_.isa.insns[static_cast<size_t>(i.insn)].name == "mac"; }

  int latest_conflict(int queue, const std::vector<Footprint>& mine) const {
    for (int at = static_cast<int>(program_.size()) - 1; at >= 0; --at) {
      if (hw_.isa.insns[static_cast<size_t>(program_[static_cast<size_t>(at)].insn)].queue != queue) continue;
      for (const Footprint& a : touched_[static_cast<size_t>(at)])
        for (const Footprint& b : mine)
          if ((a.write || b.write) && a.space == b.space && first_overlap(a.bytes, b.bytes)) return at;
    }
    return -1;
  }

  void flip(Instruction& i, const char* field, int64_t bit) {
    i.fields[static_cast<size_t>(hw_.isa.insns[static_cast<size_t>(i.insn)].field(field))] |= bit;
  }

  static constexpr int kQueues = 4;
  static constexpr int64_t kRegion = 1024;  // of in and w that is used
  const HwDescription& hw_;
  std::mt19937_64 random_;
  Result<Footprints> footprints_;
  int64_t lanes_;
  std::vector<int64_t> words_;  // of each space
  std::vector<int64_t> limit_;  // bytes of each space that may be touched
  std::vector<Instruction> program_;
  std::vector<std::vector<Footprint>> touched_;
  int synced_[kQueues][kQueues] = {{-1, -1, -1, -1}, {-1, -1, -1, -1}, {-1, -1, -1, -1}, {-1, -1, -1, -1}};
};

}  // namespace

std::vector<Instruction> random_program(const HwDescription& hw, uint64_t seed, int length, int64_t segment_bytes) {
  return Generator(hw, seed, segment_bytes).run(length);
}

}  // namespace dlc::cosim
