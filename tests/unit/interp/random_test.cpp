// Random small kernels: the fast interpreter against the tree walk, bit for bit on integers.
//
// The generator writes kernel text: one to three statements over random loops, values of random operators over reads at
// random affine, divided or data-dependent indices, some caught by ?:, some in a seq. Kernels that are wrong at run
// time stay in: both ways must give the same error.
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <regex>

#include "support.h"

using namespace dlc;
using namespace dlc::test;

namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  std::string kernel() {
    std::string text = "dlc.kernel 1\nkernel @random {\n";
    n_inputs_ = pick(1, 3);
    for (int i = 0; i < n_inputs_; ++i) {
      inputs_.push_back({fmt::format("X{}", i), random_type(), {}});
      for (int d = pick(0, 3); d > 0; --d) inputs_.back().shape.push_back(pick(1, 7));
    }
    inputs_.push_back({"I", "s64", {pick(2, 9)}});
    for (const auto& t : inputs_) text += fmt::format("  in {}: {}[{}]\n", t.name, t.type, shape(t.shape));
    const int statements = pick(1, 3);
    std::string body;
    for (int s = 0; s < statements; ++s) {
      Operand out{fmt::format("T{}", s), random_type(), {}};
      loops_.clear();
      std::string loops, index;
      for (int d = pick(1, 3); d > 0; --d) {
        const int extent = random_extent(9);
        const std::string var = fmt::format("{}{}", "ijk"[loops_.size()], s);
        loops_.push_back({var, extent});
        out.shape.push_back(extent);
        loops += fmt::format("{}{} < {}", loops.empty() ? "" : ", ", var, extent);
        index += (index.empty() ? "" : ", ") + var;
      }
      const bool seq = chance(20);
      const std::string v = value(3, out.type[0] == 'f' || out.type[0] == 'b');
      if (seq)
        body += fmt::format("  seq {} by {} {{ {}[{}] = {} }}\n", loops, chance(50) ? 1 : -1, out.name, index, v);
      else
        body += fmt::format("  for {}: {}[{}] = {}\n", loops, out.name, index, v);
      text +=
          fmt::format("  {} {}: {}[{}]\n", s + 1 == statements ? "out" : "temp", out.name, out.type, shape(out.shape));
      inputs_.push_back(out);
    }
    return text + body + "}\n";
  }

  std::vector<Tensor> operands() {
    std::vector<Tensor> r;
    for (int i = 0; i <= n_inputs_; ++i) {
      const Operand& o = inputs_[static_cast<size_t>(i)];
      auto t = Tensor::make(*parse_dtype(o.type), {o.shape.begin(), o.shape.end()});
      REQUIRE(t.has_value());
      for (int64_t e = 0; e < t->elements(); ++e) t->set_double(e, o.name == "I" ? pick(0, 6) : pick(-40, 40) / 4.0);
      r.push_back(*t);
    }
    return r;
  }

 private:
  struct Operand {
    std::string name, type;
    std::vector<int> shape;
  };
  struct Var {
    std::string name;
    int extent;
  };

  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <class T>
  const T& any(const std::vector<T>& v) {
    return v[static_cast<size_t>(pick(0, static_cast<int>(v.size()) - 1))];
  }
  std::string random_type() {
    return any(std::vector<std::string>{"f32", "f32", "f64", "f16", "s8", "u8", "s16", "s32", "s64", "s5", "bf16",
                                        "u64", "u32", "u6"});
  }
  static std::string shape(const std::vector<int>& s) { return fmt::format("{}", fmt::join(s, ",")); }

  // Now and then longer than a strip, but the points of a nest stay few enough for the tree walk.
  int random_extent(int most) {
    int points = 1;
    for (const Var& v : loops_) points *= v.extent;
    const int left = std::max(1, 3000 / points);
    return std::min(left, chance(12) ? pick(100, 600) : pick(1, most));
  }

  // An index that is mostly in bounds of a dim.
  std::string index(int extent) {
    const int form = pick(0, 11);
    const Var& v = any(loops_);
    if (form <= 5) {
      for (const Var& w : loops_)
        if (w.extent <= extent && chance(60)) return w.name;
      return std::to_string(pick(0, extent - 1));
    }
    if (form == 6) return fmt::format("{} // {}", v.name, std::max(1, v.extent / extent + 1));
    if (form == 7) return fmt::format("{} % {}", v.name, extent);
    if (form == 8) return fmt::format("{} + {}", v.name, pick(-2, 2));
    if (form == 9) return fmt::format("{}*{} - {}", pick(1, 2), v.name, any(loops_).name);
    if (form == 10) return fmt::format("min({}, {})", v.name, extent - 1);
    return fmt::format("I[{}]", v.extent <= inputs_[static_cast<size_t>(n_inputs_)].shape[0] ? v.name : "0");
  }

  std::string read(bool is_float) {
    const Operand* o = &any(inputs_);
    for (int tries = 0; tries < 8 && (o->type[0] == 'f' || o->type[0] == 'b') != is_float; ++tries) o = &any(inputs_);
    std::string r;
    for (int d : o->shape) r += (r.empty() ? "" : ", ") + index(d);
    r = fmt::format("{}[{}]", o->name, r);
    if ((o->type[0] == 'f' || o->type[0] == 'b') != is_float)
      r = fmt::format("cast({}, {})", r, is_float ? "f32" : "s32");
    return chance(85) ? fmt::format("({} ?: {})", r, pick(-3, 3)) : r;
  }

  template <class Sub>
  std::string integer_operator(const Sub& sub) {
    const int form = pick(0, 5);
    if (form == 0) return fmt::format("{}({}, {})", chance(50) ? "tdiv" : "fmod", sub(), sub());
    if (form == 1) return fmt::format("{}({})", any(kIntegerFns), sub());
    const std::string right = chance(60) ? std::to_string(pick(1, 5)) : sub();
    return fmt::format("({} {} {})", sub(), any(kIntegerOperators), right);
  }

  std::string condition(int depth) {
    const Var& v = any(loops_);
    if (depth > 1 && chance(15)) {
      const size_t outer = loops_.size();
      loops_.push_back({fmt::format("r{}", next_++), random_extent(5)});
      const std::string loop = fmt::format("{} < {}", loops_.back().name, loops_.back().extent);
      const std::string body = condition(depth - 1);
      loops_.resize(outer);
      return fmt::format("({}[{}] ({}))", chance(50) ? "any" : "all", loop, body);
    }
    if (chance(10)) return fmt::format("not ({})", condition(depth - 1));
    if (chance(10)) return fmt::format("({}) or ({})", condition(depth - 1), condition(depth - 1));
    if (chance(50)) return fmt::format("{} < {}", v.name, pick(0, v.extent));
    if (chance(20)) return fmt::format("({}) and ({})", condition(depth - 1), condition(depth - 1));
    const bool f = chance(50);
    return fmt::format("{} >= {}", value(depth - 1, f), value(depth - 1, f));
  }

  std::string value(int depth, bool is_float) {
    if (depth <= 0) return chance(20) ? std::to_string(pick(-5, 5)) : read(is_float);
    const auto sub = [&] { return value(depth - 1, is_float); };
    switch (pick(0, 9)) {
      case 0:
      case 1:
        return fmt::format("({} {} {})", sub(), any(std::vector<std::string>{"+", "-", "*"}), sub());
      case 2:
        return fmt::format("{}({}, {})", chance(50) ? "max" : "min", sub(), sub());
      case 3:
        return fmt::format("(if {} then {} else {})", condition(depth - 1), sub(), sub());
      case 4:
      case 5:
      case 6:
        return reduction(depth, is_float);
      case 7:
        if (is_float)
          return chance(80) ? fmt::format("{}({})", any(kFloatFns), sub()) : fmt::format("fmod({}, {})", sub(), sub());
        return integer_operator(sub);
      case 8:
        if (is_float) return fmt::format("({} ?: 1)", sub());
        return fmt::format("sat({}, {})", sub(), any(std::vector<std::string>{"s8", "u8", "s16"}));
      default:
        return read(is_float);
    }
  }

  std::string reduction(int depth, bool is_float) {
    const size_t outer = loops_.size();
    if (!is_float && chance(20)) {
      loops_.push_back({fmt::format("r{}", next_++), random_extent(6)});
      const std::string loop = fmt::format("{} < {}", loops_.back().name, loops_.back().extent);
      const std::string body = value(depth - 1, chance(50));
      loops_.resize(outer);
      return fmt::format("({}[{}] ({}))", chance(50) ? "argmax" : "argmin", loop, body);
    }
    std::string loops;
    for (int d = pick(1, 2); d > 0; --d) {
      const int extent = random_extent(6);
      loops_.push_back({fmt::format("r{}", next_++), extent});
      loops += fmt::format("{}{} < {}", loops.empty() ? "" : ", ", loops_.back().name, extent);
    }
    std::string body, head;
    if (chance(50)) {
      head = fmt::format("sum:{}", is_float ? (chance(70) ? "f32" : "f64") : (chance(60) ? "s32" : "s64"));
      body = fmt::format("({} * {})", value(chance(60) ? 0 : depth - 1, is_float), value(0, is_float));
    } else {
      head = fmt::format("{}:{}", any(std::vector<std::string>{"sum", "max", "min", "prod"}), is_float ? "f32" : "s16");
      body = "(" + value(depth - 1, is_float) + ")";
    }
    loops_.resize(outer);
    return fmt::format("({}[{}] {})", head, loops, body);
  }

  const std::vector<std::string> kFloatFns{"exp", "tanh", "abs", "floor", "round", "ceil", "trunc", "sign", "-"};
  const std::vector<std::string> kIntegerFns{"abs", "sign", "-", "~"};
  const std::vector<std::string> kIntegerOperators{"//", "%", ">>", "&", "<<", "|", "^"};
  std::mt19937_64 rng_;
  std::vector<Operand> inputs_;
  std::vector<Var> loops_;
  int n_inputs_ = 0, next_ = 0;
};

// The two ways visit points in different orders: which of several wrong points is named first may differ.
std::string without_point(const std::string& message) {
  return std::regex_replace(message, std::regex("` at [^:]*"), "`");
}

bool close(double a, double b, double scale) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::fabs(a - b) <= scale * (1e-4 * std::max(std::fabs(a), std::fabs(b)) + 1e-4);
}

}  // namespace

TEST_CASE("the fast interpreter agrees with the tree walk on random kernels") {
  int agreed = 0, failed = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Generator g(seed);
    const std::string text = g.kernel();
    const auto operands = g.operands();
    INFO("seed " << seed << "\n" << text);
    const auto k = parse_kernel(text);
    if (!k) FAIL(to_string(k.error()));
    if (const auto ok = verify(*k); !ok) FAIL(to_string(ok.error()));
    const auto slow = run_kernel(*k, operands, {.tree_walk = true});
    const auto fast = run_kernel(*k, operands);
    REQUIRE(slow.has_value() == fast.has_value());
    if (!slow) {
      ++failed;
      REQUIRE(without_point(to_string(slow.error())) == without_point(to_string(fast.error())));
      continue;
    }
    ++agreed;
    const Tensor &a = slow->at(0), &b = fast->at(0);
    for (int64_t i = 0; i < a.elements(); ++i) {
      const double x = a.get_double(i), y = b.get_double(i);
      const double scale = a.dtype().bits == 16 ? 100 : 1;
      INFO("element " << i << ": " << x << " and " << y);
      REQUIRE((a.dtype().is_float() ? close(x, y, scale) : a.get_int(i) == b.get_int(i)));
    }
  }
  CHECK(agreed > 500);
  CHECK(failed > 50);
}

TEST_CASE("extents left as parameters of run() change nothing") {
  int agreed = 0;
  for (uint64_t seed = 5001; seed <= 5400; ++seed) {
    Generator g(seed);
    const std::string fixed = g.kernel();
    const auto operands = g.operands();
    // Every dim and extent n becomes the symbol pn.
    std::string text = std::regex_replace(fixed, std::regex("< ([0-9]+)"), "< p$1");
    const std::regex dims("((?:in|temp|out) [A-Z0-9]+: [a-z0-9]+\\[)([0-9,]+)\\]");
    std::string open;
    for (std::smatch m; std::regex_search(text, m, dims); text = m.suffix())
      open += m.prefix().str() + m[1].str() + std::regex_replace(m[2].str(), std::regex("([0-9]+)"), "p$1") + "]";
    open += text;
    Bindings parameters;
    for (int n = 0; n <= 600; ++n) parameters.emplace(fmt::format("p{}", n), n);
    INFO("seed " << seed << "\n" << open);
    const auto k = parse_kernel(open);
    if (!k) FAIL(to_string(k.error()));
    const auto want = run_kernel(kernel(fixed), operands);
    const auto prepared = PreparedKernel::prepare(*k);
    if (!prepared) FAIL(to_string(prepared.error()));
    std::vector<Tensor> storage = operands;
    std::vector<Buffer> buffers(k->tensors.size());
    for (size_t i = 0; i < operands.size(); ++i)
      buffers[static_cast<size_t>(k->inputs[i])] = {storage[i].mutable_bytes(),
                                                    static_cast<int64_t>(storage[i].byte_size())};
    const KernelTensor& result = k->tensors[static_cast<size_t>(k->outputs[0])];
    std::vector<int64_t> shape;
    for (const Expr& d : result.shape) shape.push_back(*evaluate(d, parameters));
    REQUIRE_OK(Tensor y, Tensor::make(result.dtype, shape));
    buffers[static_cast<size_t>(k->outputs[0])] = {y.mutable_bytes(), static_cast<int64_t>(y.byte_size())};
    const auto ran = prepared->run(buffers, parameters);
    REQUIRE(ran.has_value() == want.has_value());
    if (!ran) continue;
    ++agreed;
    for (int64_t i = 0; i < y.elements(); ++i) {
      INFO("element " << i << ": " << want->at(0).get_double(i) << " and " << y.get_double(i));
      const double scale = y.dtype().bits == 16 ? 100 : 1;
      REQUIRE((y.dtype().is_float() ? close(want->at(0).get_double(i), y.get_double(i), scale)
                                    : want->at(0).get_int(i) == y.get_int(i)));
    }
  }
  CHECK(agreed > 150);
}
