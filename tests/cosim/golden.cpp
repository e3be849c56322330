#include "tests/cosim/golden.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dlc::cosim {
namespace {

enum Queue { kLd, kMac, kVec, kSt };

// Round half to even. The part shifted out is unsigned, so that nothing overflows.
int64_t round_shift(int64_t x, int64_t s) {
  if (s == 0) return x;
  const int64_t down = x >> s;
  const uint64_t rest = static_cast<uint64_t>(x) & ((uint64_t{1} << s) - 1), half = uint64_t{1} << (s - 1);
  return down + (rest > half || (rest == half && (down & 1) != 0) ? 1 : 0);
}

// 2^30 / x, of which only the nine highest bits of x are looked at.
int64_t reciprocal(int64_t x) {
  if (x <= 0) return 0x7fffffff;
  const int place = std::bit_width(static_cast<uint64_t>(x)) - 1;
  const int64_t nine = place >= 8 ? x >> (place - 8) : x << (8 - place);  // 256 .. 511
  const int64_t quotient = (int64_t{1} << 25) / (2 * nine + 1);
  return place < 14 ? quotient << (14 - place) : quotient >> (place - 14);
}

// 2^30 over the root of x, of which only the nine highest bits are looked at: a hyperbola for even places of the
// highest one, and that over the root of two for odd ones.
int64_t reciprocal_root(int64_t x) {
  if (x <= 0) return 0x7fffffff;
  const int place = std::bit_width(static_cast<uint64_t>(x)) - 1;
  const int64_t nine = place >= 8 ? x >> (place - 8) : x << (8 - place);  // 256 .. 511
  const int64_t root = 18172 + 17824398 / (nine + 121);                   // 16 bits
  return root * (place % 2 == 0 ? 65536 : 46341) >> (place / 2 + 2);
}

int64_t clamp(int64_t x, int64_t lo, int64_t hi) { return std::min(std::max(x, lo), hi); }

}  // namespace

std::string to_string(const Word& w) {
  std::string s = w.memory + "[" + std::to_string(w.address) + "] =";
  for (uint8_t b : w.bytes) s += " " + std::to_string(static_cast<int8_t>(b));
  return s;
}

Golden::Golden(const HwDescription& hw) : hw_(hw), lanes_(*hw.param("C")), writes_(4) {
  for (const HwState& m : hw.state)
    if (m.kind == HwState::Kind::memory) memories[m.name].resize(static_cast<size_t>(m.words * m.elem.bytes()));
}

int64_t Golden::f(const Instruction& i, const char* field) const {
  return i.fields[static_cast<size_t>(hw_.isa.insns[static_cast<size_t>(i.insn)].field(field))];
}
std::string Golden::name(const Instruction& i, const char* field) const {
  const HwInsn& insn = hw_.isa.insns[static_cast<size_t>(i.insn)];
  return insn.fields[static_cast<size_t>(insn.field(field))].find(f(i, field))->name;
}
bool Golden::is(const Instruction& i, const char* field, const char* enumerator) const {
  return name(i, field) == enumerator;
}

void Golden::put(int queue, const std::string& memory, int64_t word, const std::vector<uint8_t>& bytes) {
  auto& m = memories.at(memory);
  std::copy(bytes.begin(), bytes.end(), m.begin() + word * static_cast<int64_t>(bytes.size()));
  writes_[static_cast<size_t>(queue)].push_back({memory, static_cast<uint64_t>(word), bytes});
}

void Golden::run(const std::vector<Instruction>& program) {
  for (const Instruction& i : program) {
    const std::string& op = hw_.isa.insns[static_cast<size_t>(i.insn)].name;
    if (op == "ld") ld(i);
    if (op == "mac") mac(i);
    if (op == "vec") vec(i);
    if (op == "vec2") vec2(i);
    if (op == "row") row(i);
    if (op == "norm") norm(i);
    if (op == "st") st(i);
  }
}

void Golden::ld(const Instruction& i) {
  int64_t word = f(i, "sp");
  for (int64_t z = 0; z < f(i, "nz"); ++z)
    for (int64_t y = 0; y < f(i, "ny"); ++y)
      for (int64_t x = 0; x < f(i, "nx"); ++x) {
        const int64_t row = y + f(i, "y0"), col = x + f(i, "x0");
        std::vector<uint8_t> bytes(static_cast<size_t>(lanes_), static_cast<uint8_t>(f(i, "fill")));
        if (row >= 0 && row < f(i, "y1") && col >= 0 && col < f(i, "x1")) {
          const int64_t from = static_cast<int64_t>(segments[static_cast<size_t>(f(i, "seg"))]) + f(i, "off") +
                               (z * f(i, "sz") + row * f(i, "sy") + col) * lanes_;
          std::copy_n(dram.begin() + from, lanes_, bytes.begin());
        }
        put(kLd, name(i, "to"), word++, bytes);
      }
}

void Golden::st(const Instruction& i) {
  int64_t word = f(i, "sp");
  for (int64_t z = 0; z < f(i, "nz"); ++z)
    for (int64_t y = 0; y < f(i, "ny"); ++y)
      for (int64_t x = 0; x < f(i, "nx"); ++x, ++word) {
        const int64_t to = static_cast<int64_t>(segments[static_cast<size_t>(f(i, "seg"))]) + f(i, "off") +
                           (z * f(i, "sz") + y * f(i, "sy") + x) * lanes_;
        std::vector<uint8_t> bytes(static_cast<size_t>(lanes_));
        std::copy_n(memories["out"].begin() + word * lanes_, lanes_, bytes.begin());
        std::copy(bytes.begin(), bytes.end(), dram.begin() + to);
        writes_[kSt].push_back({"dram", static_cast<uint64_t>(to), bytes});
      }
}

void Golden::mac(const Instruction& i) {
  const bool depthwise = is(i, "wdir", "diag") || is(i, "wdir", "tri"), by_column = is(i, "wdir", "col");
  const Vectors in = vectors("in"), weight = vectors("w");
  const int64_t zin = f(i, "zin"), zw = f(i, "zw"), w = f(i, "w_base"), n_ci = f(i, "n_ci"), n_kh = f(i, "n_kh"),
                n_kw = f(i, "n_kw");
  const int64_t s_ci = f(i, "s_ci"), s_kh = f(i, "s_kh"), s_kw = f(i, "s_kw");
  int64_t word = f(i, "acc_base");
  for (int64_t oh = 0; oh < f(i, "n_oh"); ++oh)
    for (int64_t ow = 0; ow < f(i, "n_ow"); ++ow, ++word) {
      const int64_t from = f(i, "in_base") + oh * f(i, "s_oh") + ow * f(i, "s_ow");
      std::vector<uint8_t> bytes(static_cast<size_t>(lanes_ * 4));
      for (int64_t c = 0; c < lanes_; ++c) {
        int32_t before = 0;
        std::memcpy(&before, &memories["acc"][static_cast<size_t>((word * lanes_ + c) * 4)], 4);
        int64_t sum = f(i, "accum") != 0 ? before : 0, tap = 0;
        for (int64_t ci = 0; ci < n_ci; ++ci)
          for (int64_t kh = 0; kh < n_kh; ++kh)
            for (int64_t kw = 0; kw < n_kw; ++kw, ++tap) {
              const int64_t at = from + ci * s_ci + kh * s_kh + kw * s_kw;
              if (depthwise) {
                sum += (in.at(at, c) - zin) * (weight.at(w + tap, c) - zw);
              } else {
                for (int64_t k = 0; k < lanes_; ++k)
                  sum += (in.at(at, k) - zin) *
                         ((by_column ? weight.at(w + tap * lanes_ + c, k) : weight.at(w + tap * lanes_ + k, c)) - zw);
              }
            }
        const int32_t out = static_cast<int32_t>(sum);
        std::memcpy(&bytes[static_cast<size_t>(c * 4)], &out, 4);
      }
      put(kMac, "acc", word, bytes);
    }
}

int8_t Golden::look_up(const Instruction& i, int64_t y) const {
  if (!is(i, "lut", "t8")) return static_cast<int8_t>(y);
  return static_cast<int8_t>(memories.at("tab").at(static_cast<size_t>(f(i, "slot") * 256 + y + 128)));
}

void Golden::vec(const Instruction& i) {
  const std::string a = name(i, "a");
  for (int64_t oh = 0; oh < f(i, "n_oh"); ++oh)
    for (int64_t ow = 0; ow < f(i, "n_ow"); ++ow) {
      std::vector<uint8_t> bytes(static_cast<size_t>(lanes_));
      for (int64_t c = 0; c < lanes_; ++c) {
        int64_t x = is(i, "red", "max") ? INT64_MIN : 0;
        for (int64_t kh = 0; kh < f(i, "n_kh"); ++kh)
          for (int64_t kw = 0; kw < f(i, "n_kw"); ++kw) {
            const int64_t at =
                f(i, "a_base") + oh * f(i, "s_oh") + ow * f(i, "s_ow") + kh * f(i, "s_kh") + kw * f(i, "s_kw");
            int64_t v = 0;
            if (a == "acc") {
              int32_t raw = 0;
              std::memcpy(&raw, &memories["acc"].at(static_cast<size_t>((at * lanes_ + c) * 4)), 4);
              v = raw;
            } else {
              v = vectors(a).at(at, c);
            }
            v -= f(i, "za");
            x = is(i, "red", "max") ? std::max(x, v) : x + v;
          }
        int64_t m = f(i, "ma"), s = f(i, "sh");
        if (is(i, "scl", "lane")) {
          const uint8_t* record = &memories["par"].at(static_cast<size_t>(f(i, "p_base") * lanes_));
          int32_t bias = 0;
          uint32_t mul = 0;
          std::memcpy(&bias, record + 4 * c, 4);
          std::memcpy(&mul, record + 4 * lanes_ + 4 * c, 4);
          x += bias;
          m = mul & 0x7fffffff;
          s = record[8 * lanes_ + c] & 63;
        }
        const int32_t narrow = static_cast<int32_t>(x);
        const int64_t y = clamp(round_shift(int64_t{narrow} * m, s) + f(i, "zp"), f(i, "lo"), f(i, "hi"));
        bytes[static_cast<size_t>(c)] = static_cast<uint8_t>(look_up(i, y));
      }
      put(kVec, name(i, "dst"), f(i, "d_base") + oh * f(i, "d_oh") + ow * f(i, "d_ow"), bytes);
    }
}

void Golden::vec2(const Instruction& i) {
  for (int64_t oh = 0; oh < f(i, "n_oh"); ++oh)
    for (int64_t ow = 0; ow < f(i, "n_ow"); ++ow) {
      std::vector<uint8_t> bytes(static_cast<size_t>(lanes_));
      for (int64_t c = 0; c < lanes_; ++c) {
        const int64_t x =
            vectors(name(i, "a")).at(f(i, "a_base") + oh * f(i, "a_oh") + ow * f(i, "a_ow"), c) - f(i, "za");
        const int64_t y =
            vectors(name(i, "b")).at(f(i, "b_base") + oh * f(i, "b_oh") + ow * f(i, "b_ow"), c) - f(i, "zb");
        const int64_t t = is(i, "bop", "add") ? x * f(i, "ma") + y * f(i, "mb") : x * y * f(i, "ma");
        const int64_t r = clamp(round_shift(t, f(i, "sh")) + f(i, "zp"), f(i, "lo"), f(i, "hi"));
        bytes[static_cast<size_t>(c)] = static_cast<uint8_t>(look_up(i, r));
      }
      put(kVec, name(i, "dst"), f(i, "d_base") + oh * f(i, "d_oh") + ow * f(i, "d_ow"), bytes);
    }
}

int32_t Golden::accumulator(int64_t word, int64_t lane) const {
  int32_t v = 0;
  std::memcpy(&v, &memories.at("acc")[static_cast<size_t>((word * lanes_ + lane) * 4)], 4);
  return v;
}

void Golden::row(const Instruction& i) {
  const Vectors a = vectors(name(i, "a"));
  for (int64_t oh = 0; oh < f(i, "n_oh"); ++oh)
    for (int64_t ow = 0; ow < f(i, "n_ow"); ++ow) {
      const int64_t from = f(i, "a_base") + oh * f(i, "a_oh") + ow * f(i, "a_ow");
      std::vector<uint8_t> bytes(static_cast<size_t>(lanes_));
      if (is(i, "f", "max")) {
        int64_t most = -128;
        for (int64_t e = 0; e < std::min(f(i, "n"), f(i, "n_k") * lanes_); ++e)
          most = std::max<int64_t>(most, a.at(from + e / lanes_ * f(i, "a_k"), e % lanes_));
        std::ranges::fill(bytes, static_cast<uint8_t>(most));
      } else if (is(i, "f", "var")) {
        int64_t squares = 0;
        for (int64_t e = 0; e < f(i, "n_k") * lanes_; ++e) {
          const int64_t d = a.at(from + e / lanes_ * f(i, "a_k"), e % lanes_) - f(i, "za");
          squares += d * d;
        }
        const int64_t sum = accumulator(f(i, "b_base") + oh * f(i, "b_oh") + ow * f(i, "b_ow"), 0);
        const int64_t v = (f(i, "n_k") * lanes_ * (squares + f(i, "ma")) - sum * sum) >> f(i, "sh");
        std::vector<uint8_t> word;
        for (int64_t b = 0; b < 4 * lanes_; ++b) word.push_back(static_cast<uint8_t>(v >> (b % 4 * 8)));
        put(kVec, "acc", f(i, "d_base") + oh * f(i, "d_oh") + ow * f(i, "d_ow"), word);
        continue;
      } else {
        const int64_t word = f(i, "b_base") + oh * f(i, "b_oh") + ow * f(i, "b_ow");
        for (int64_t c = 0; c < lanes_; ++c) {
          const int64_t r = reciprocal(accumulator(word, c));
          const int64_t t = round_shift((a.at(from, c) - f(i, "za")) * f(i, "ma") * r, f(i, "sh"));
          bytes[static_cast<size_t>(c)] = static_cast<uint8_t>(clamp(t + f(i, "zp"), f(i, "lo"), f(i, "hi")));
        }
      }
      put(kVec, name(i, "dst"), f(i, "d_base") + oh * f(i, "d_oh") + ow * f(i, "d_ow"), bytes);
    }
}

void Golden::norm(const Instruction& i) {
  const Vectors a = vectors(name(i, "a"));
  for (int64_t ow = 0; ow < f(i, "n_ow"); ++ow)
    for (int64_t k = 0; k < f(i, "n_k"); ++k) {
      const int64_t sum = accumulator(f(i, "b_base") + ow * f(i, "b_ow"), 0);
      const int64_t root = reciprocal_root(accumulator(f(i, "c_base") + ow * f(i, "c_ow"), 0));
      const uint8_t* record = &memories["par"].at(static_cast<size_t>((f(i, "p_base") + 4 * k) * lanes_));
      std::vector<uint8_t> bytes(static_cast<size_t>(lanes_));
      for (int64_t c = 0; c < lanes_; ++c) {
        int16_t gain = 0, plus = 0;
        std::memcpy(&gain, record + 2 * c, 2);
        std::memcpy(&plus, record + 2 * (lanes_ + c), 2);
        const int64_t x = a.at(f(i, "a_base") + ow * f(i, "a_ow") + k * f(i, "a_k"), c) - f(i, "za");
        const auto far = static_cast<int32_t>(f(i, "n_k") * lanes_ * x - sum);
        const auto standard = static_cast<int32_t>(far * root >> 16);
        const int64_t t = round_shift(int64_t{standard} * gain + int64_t{plus} * f(i, "mb"), f(i, "sh"));
        bytes[static_cast<size_t>(c)] = static_cast<uint8_t>(clamp(t + f(i, "zp"), f(i, "lo"), f(i, "hi")));
      }
      put(kVec, name(i, "dst"), f(i, "d_base") + ow * f(i, "d_ow") + k * f(i, "d_k"), bytes);
    }
}

}  // namespace dlc::cosim
