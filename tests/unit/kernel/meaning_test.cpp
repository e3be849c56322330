// Folding and the normal form keep the meaning: the interpreter gives the same before and after.
#include <random>

#include "dlc/interp/interp.h"
#include "dlc/kernel/normal_form.h"
#include "dlc_test/catch.h"
#include "kernels.h"

using namespace dlc;

namespace {

// Random expressions written twice: once over literals and loop variables, which the constructors fold, and once over
// tensors with the same contents, which they cannot.
struct Twice {
  std::string folded, read;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Twice integer(int depth) {
    if (depth == 0) return leaf();
    const Twice a = integer(depth - 1), b = integer(depth - 1);
    switch (pick(14)) {
      case 0:
        return call("min", a, b);
      case 1:
        return call("max", a, b);
      case 2:
        return call("tdiv", a, b);
      case 3:
        return call("fmod", a, b);
      case 4:
        return select(boolean(depth - 1), a, b);
      case 5:
        return binary("?:", a, b);
      case 6:
        return {"cast(" + a.folded + ", s3)", "cast(" + a.read + ", s3)"};
      case 7:
        return {"sat(" + a.folded + ", u2)", "sat(" + a.read + ", u2)"};
      case 8:
        return {"abs(-" + a.folded + ")", "abs(-" + a.read + ")"};
      case 9:  // an index expression takes its divisors to be other than 0; a literal may be
        return binary(one_of({"//", "%"}), a, pick(2) == 0 ? literal() : call("max", b, {"1", "1"}));
      case 10:
        return binary(one_of({"<<", ">>"}), a, pick(2) == 0 ? literal() : binary("&", b, {"3", "3"}));
      default:
        return binary(one_of({"+", "-", "*", "&", "|", "^"}), a, b);
    }
  }

  Twice boolean(int depth) {
    if (depth > 0 && pick(3) == 0) {
      const Twice a = boolean(depth - 1), b = boolean(depth - 1);
      if (pick(3) == 0) return {"(not " + a.folded + ")", "(not " + a.read + ")"};
      return binary(one_of({"and", "or"}), a, b);
    }
    const std::string op = one_of({"==", "!=", "<", "<=", ">", ">="});
    return pick(3) == 0 ? binary(op, real(depth), real(depth)) : binary(op, integer(depth), integer(depth));
  }

  Twice real(int depth) {
    if (depth == 0) {
      const int i = pick(kReals.size());
      return {kReals[static_cast<size_t>(i)] + ":f64", "R[" + std::to_string(i) + "]"};
    }
    const Twice a = real(depth - 1), b = pick(4) == 0 ? integer(depth - 1) : real(depth - 1);
    switch (pick(8)) {
      case 0:
        return call(one_of({"min", "max", "fmod"}), a, b);
      case 1:
        return select(boolean(depth - 1), a, b);
      case 2:
        return binary("?:", a, b);
      case 3: {
        const std::string fn = one_of({"floor", "ceil", "round", "trunc", "sign", "abs", "sqrt"});
        return {fn + "(" + a.folded + ")", fn + "(" + a.read + ")"};
      }
      default:
        return binary(one_of({"+", "-", "*", "/", "//", "%"}), a, b);
    }
  }

  static inline const std::vector<std::string> kReals{"0.0", "1.0", "0.5", "2.5", "3.0", "1e300"};
  static inline const std::vector<std::string> kIntegers{"0", "1", "2", "3", "5", "-4"};

 private:
  int pick(size_t n) { return static_cast<int>(random_() % n); }
  std::string one_of(std::vector<std::string> choices) { return choices[static_cast<size_t>(pick(choices.size()))]; }
  Twice leaf() {
    if (pick(2) == 0) return pick(2) == 0 ? Twice{"i", "V[i]"} : Twice{"j", "V[j]"};
    return literal();
  }
  Twice literal() {
    const int i = pick(kIntegers.size());
    return {kIntegers[static_cast<size_t>(i)], "C[" + std::to_string(i) + "]"};
  }
  static Twice binary(const std::string& op, const Twice& a, const Twice& b) {
    return {"(" + a.folded + " " + op + " " + b.folded + ")", "(" + a.read + " " + op + " " + b.read + ")"};
  }
  static Twice call(const std::string& fn, const Twice& a, const Twice& b) {
    return {fn + "(" + a.folded + ", " + b.folded + ")", fn + "(" + a.read + ", " + b.read + ")"};
  }
  static Twice select(const Twice& c, const Twice& a, const Twice& b) {
    return {"(if " + c.folded + " then " + a.folded + " else " + b.folded + ")",
            "(if " + c.read + " then " + a.read + " else " + b.read + ")"};
  }

  std::mt19937 random_;
};

// The values of `expression` at every i < 4, j < 3, or the error.
std::string values(const std::string& type, const std::string& expression) {
  const auto k = parse_kernel("dlc.kernel 1\nkernel @k { in V: s64[4] in C: s64[6] in R: f64[6] out Y: " + type +
                              "[4,3]\n  for i < 4, j < 3: Y[i, j] = " + expression + " ?: 77 }");
  if (!k) return to_string(k.error());
  auto v = Tensor::from<int64_t>(kS64, {4}, std::vector<int64_t>{0, 1, 2, 3});
  std::vector<int64_t> integers;
  for (const auto& s : Generator::kIntegers) integers.push_back(std::stoll(s));
  std::vector<double> reals;
  for (const auto& s : Generator::kReals) reals.push_back(std::stod(s));
  auto c = Tensor::from<int64_t>(kS64, {6}, integers);
  auto r = Tensor::from<double>(kF64, {6}, reals);
  const std::vector<Tensor> inputs{*v, *c, *r};
  InterpOptions options;
  options.tree_walk = true;
  const auto result = run_kernel(*k, inputs, options);
  if (!result) return "error: " + std::string(result.error().message());
  std::string s;
  for (int64_t i = 0; i < 12; ++i)
    s += (type == "f64" ? std::to_string((*result)[0].get_double(i)) : std::to_string((*result)[0].get_int(i))) + " ";
  return s;
}

Tensor random_tensor(std::vector<int64_t> shape, unsigned seed) {
  auto t = *Tensor::make(kF32, std::move(shape));
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.elements(); ++i) t.set_double(i, static_cast<double>(random() % 2001) / 1000 - 1);
  return t;
}

void same_after_normalising(const char* text, const std::vector<Tensor>& inputs) {
  REQUIRE_OK(const Kernel k, parse_kernel(text));
  REQUIRE_OK(const Kernel n, normalise(k));
  REQUIRE_OK(const auto before, run_kernel(k, inputs));
  REQUIRE_OK(const auto after, run_kernel(n, inputs));
  REQUIRE(before[0].shape() == after[0].shape());
  for (int64_t i = 0; i < before[0].elements(); ++i) REQUIRE(before[0].get_double(i) == after[0].get_double(i));
}

}  // namespace

TEST_CASE("folded expressions have the values of unfolded ones") {
  Generator g(1);
  int compared = 0;
  for (int n = 0; n < 3000; ++n) {
    const bool is_real = n % 3 == 0;
    const Twice e = is_real ? g.real(1 + n % 3) : g.integer(1 + n % 4);
    const std::string type = is_real ? "f64" : "s64";
    INFO(e.folded);
    const std::string reads = values(type, e.read);
    if (reads.starts_with("error: ")) continue;  // folding may decide it
    ++compared;
    CHECK(values(type, e.folded) == reads);
  }
  CHECK(compared > 2000);
}

TEST_CASE("literals convert as elements do") {
  for (size_t i = 0; i < std::size(Generator::kReals); ++i)
    for (const std::string to : {"u64", "s64", "s8", "u3", "f16", "f8e5m2", "f8e4m3fnuz", "f4e2m1", "bool"})
      for (const std::string how : {"cast(", "sat("}) {
        if (how == "sat(" && to == "bool") continue;
        const std::string literal = how + "-" + Generator::kReals[i] + ":f64, " + to + ")";
        INFO(literal);
        CHECK(values("f64", "cast(" + literal + ", f64)") ==
              values("f64", "cast(" + how + "-R[" + std::to_string(i) + "], " + to + "), f64)"));
      }
}

TEST_CASE("the normal form computes the same") {
  same_after_normalising(kSoftmax, {random_tensor({5, 7}, 1)});
  same_after_normalising(
      kLstm, {random_tensor({4, 2, 3}, 1), random_tensor({5, 3}, 2), random_tensor({5, 5}, 3), random_tensor({5}, 4)});
}
