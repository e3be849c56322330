// See dlc/graph/state.h.
#include "dlc/graph/state.h"

#include <algorithm>

namespace dlc {

namespace {

constexpr int64_t kNotSaid = 1048576;  // what dims that nobody gave a range to may be at most

bool same(const Expr& a, const Expr& b, const Ranges& symbols) { return a == b || provably_eq(a, b, symbols); }

// The text that `*` stands for when `pattern` is this name.
std::optional<std::string> matched(const std::string& pattern, const std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional(std::string()) : std::nullopt;
  const std::string_view head = std::string_view(pattern).substr(0, star),
                         tail = std::string_view(pattern).substr(star + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return name.substr(star, name.size() - head.size() - tail.size());
}

class Declaration {
 public:
  explicit Declaration(Graph& g) : g_(g) {}

  Result<> add(const std::string& wanted) {
    const size_t equals = middle(wanted);
    if (equals == std::string::npos || equals == 0 || equals + 1 == wanted.size())
      return fail({}, "state '" + wanted + "': an input and an output are wanted", kExample);
    const std::string input = wanted.substr(0, equals), output = wanted.substr(equals + 1);
    if (std::ranges::count(input, '*') > 1 || std::ranges::count(input, '*') != std::ranges::count(output, '*'))
      return fail({}, "state '" + wanted + "': both names have one *, or none", kExample);
    bool found = false;
    for (const ValueId v : g_.inputs) {
      const auto middle = matched(input, g_.value(v).name);
      if (!middle) continue;
      found = true;
      std::string to = output;
      if (const size_t star = to.find('*'); star != std::string::npos) to.replace(star, 1, *middle);
      DLC_CHECK(pair(v, to));
    }
    if (found) return {};
    std::vector<std::string> names;
    for (const ValueId v : g_.inputs) names.push_back(g_.value(v).name);
    return fail({}, "state '" + wanted + "': the model has no input '" + input + "'", listed(input, names));
  }

 private:
  static constexpr const char* kExample = "--state past=present, or --state 'past.*=present.*'";

  // The = between the names, which may have some of their own.
  size_t middle(const std::string& wanted) const {
    for (size_t at = wanted.find('='); at != std::string::npos; at = wanted.find('=', at + 1)) {
      const std::string input = wanted.substr(0, at), output = wanted.substr(at + 1);
      if (std::ranges::any_of(g_.inputs, [&](ValueId v) { return matched(input, g_.value(v).name).has_value(); }) &&
          std::ranges::any_of(g_.output_names, [&](const auto& name) { return matched(output, name).has_value(); }))
        return at;
    }
    return wanted.find('=');
  }

  static std::string listed(const std::string& name, const std::vector<std::string>& names) {
    const std::string near = nearest(name, names);
    if (!near.empty()) return "did you mean '" + near + "'?";
    std::string all;
    for (size_t i = 0; i < names.size() && i < 8; ++i) all += (i == 0 ? "" : ", ") + names[i];
    return "there are " + all + (names.size() > 8 ? ", ..." : "");
  }

  Result<> pair(ValueId v, const std::string& output) {
    const std::string& input = g_.value(v).name;
    const auto at = std::ranges::find(g_.output_names, output);
    if (at == g_.output_names.end())
      return fail({}, "state '" + input + "': the model has no output '" + output + "'",
                  listed(output, g_.output_names));
    for (const StatePair& s : g_.states)
      if (s.input == input || s.output == output)
        return fail({}, "state '" + input + "' -> '" + output + "': '" + s.input + "' -> '" + s.output +
                            "' is one already, and a value belongs to one state");
    const TensorType& past = g_.value(v).type;
    const TensorType& present = g_.value(g_.outputs[static_cast<size_t>(at - g_.output_names.begin())]).type;
    const auto refuse = [&](const std::string& why, const std::string& hint = {}) {
      return fail({}, "'" + output + "' cannot be the next '" + input + "': " + why, hint);
    };
    narrow_fixed(past, present);
    if (const std::string why = not_a_state(past, present, g_.symbols); !why.empty()) return refuse(why);
    if (const auto d = growing_dim(past, present, g_.symbols)) {
      const std::string length(*past.shape[*d].as_symbol());
      const Range& range = g_.symbols.find(length)->second;
      if (range.bounds.hi >= kNotSaid)
        return refuse("how long it may become is not said", "--dim " + length + "=0..4096, or another length");
      Expr bytes(past.dtype.bytes());
      for (size_t i = 0; i < past.shape.size(); ++i)
        bytes = bytes *
                (i == *d ? Expr(range.bounds.hi) : Expr(std::max<int64_t>(bounds(past.shape[i], g_.symbols).lo, 0)));
      if (!bytes.valid() || *bytes.constant() > Tensor::max_bytes())
        return refuse("for " + length + " = " + std::to_string(range.bounds.hi) + " it is more than the " +
                          std::to_string(Tensor::max_bytes()) + " bytes that a tensor may have",
                      "a smaller --dim " + length + "=..");
      if (!narrow(past.shape[*d], present.shape[*d], range.bounds.hi))
        return refuse("no bound of " + to_string(present.shape[*d]) + " follows from the one of " + length,
                      "a larger --dim " + length + "=.., or smaller ones of the others: it must be at most " +
                          std::to_string(range.bounds.hi));
    }
    g_.states.push_back({input, output});
    return {};
  }

  // Where a dim is always `c` the output's is so for symbols of at most c: max(T, 16) for T in 1..16.
  void narrow_fixed(const TensorType& past, const TensorType& present) {
    for (size_t d = 0; d < past.shape.size() && d < present.shape.size(); ++d) {
      const auto c = past.shape[d].constant();
      if (!c || same(past.shape[d], present.shape[d], g_.symbols)) continue;
      for (const std::string& s : present.shape[d].symbols())
        if (at_most(s, *c, [&] { return same(past.shape[d], present.shape[d], g_.symbols); })) break;
    }
  }

  // Ranges for which `present` is at most `most`, as `past` is already.
  bool narrow(const Expr& past, const Expr& present, int64_t most) {
    const auto holds = [&] { return provably_le(present, most, g_.symbols); };
    if (holds()) return true;
    if (const auto step = (present - past).constant(); step && *step > 0)
      return at_most(std::string(*past.as_symbol()), Expr(most - *step), holds);
    for (const std::string& s : present.symbols()) {
      if (past.mentions(s)) continue;
      const auto a = affine(present, {&s, 1});
      const int64_t times = a ? a->coefficients[0].constant().value_or(0) : 0;
      if (times > 0 && at_most(s, floor_div(most - a->base, times), holds)) return true;
      if (at_most(s, most, holds)) return true;
    }
    return false;
  }

  // Bounds a symbol by `most` too, if that makes `wanted` true.
  template <class Wanted>
  bool at_most(const std::string& symbol, const Expr& most, const Wanted& wanted) {
    const auto it = g_.symbols.find(symbol);
    if (it == g_.symbols.end()) return false;
    const Range old = it->second;
    const Expr both = old.upper != nullptr ? min(Expr(old.upper), most) : most;
    const Interval of_both = bounds(both, g_.symbols);
    if (of_both.hi < old.bounds.lo) return false;  // no size would be left
    const auto limit = both.constant();
    it->second.bounds.hi = limit ? std::min(*limit, old.bounds.hi) : Interval::kPosInf;
    it->second.upper = limit ? nullptr : (of_both.hi <= old.bounds.hi ? both : min(old.bounds.hi, both)).node();
    if (wanted()) return true;
    it->second = old;
    return false;
  }

  Graph& g_;
};

// What the narrower ranges decide: max(T, 16) is 16 for T in 1..16, and a pad to it pads nothing.
void use_ranges(Graph& g) {
  const auto settle = [&](Expr& e) { e = simplify(e, g.symbols); };
  for (size_t v = 0; v < g.value_count(); ++v)
    std::ranges::for_each(g.value(static_cast<ValueId>(v)).type.shape, settle);
  for (const NodeId n : g.order())
    for (auto& [name, attr] : g.node(n).attrs) {
      if (auto* e = std::get_if<Expr>(&attr)) settle(*e);
      if (auto* list = std::get_if<std::vector<Expr>>(&attr)) std::ranges::for_each(*list, settle);
    }
}

}  // namespace

std::optional<size_t> growing_dim(const TensorType& input, const TensorType& output, const Ranges& symbols) {
  for (size_t d = 0; d < input.shape.size() && d < output.shape.size(); ++d)
    if (!same(input.shape[d], output.shape[d], symbols)) return d;
  return std::nullopt;
}

std::string not_a_state(const TensorType& input, const TensorType& output, const Ranges& symbols) {
  const std::string types = "it is " + to_string(output) + ", the input is " + to_string(input);
  if (input.dtype != output.dtype || input.shape.size() != output.shape.size()) return types;
  const auto growing = growing_dim(input, output, symbols);
  if (!growing) return {};
  for (const Expr& length : {input.shape[*growing], output.shape[*growing]})
    if (!provably_le(0, length, symbols)) return types + ", and " + to_string(length) + " may be below 0";
  for (size_t d = *growing + 1; d < input.shape.size(); ++d)
    if (!same(input.shape[d], output.shape[d], symbols)) return types + ", and more than one dim differs";
  if (!input.shape[*growing].as_symbol())
    return types + ", and dim " + std::to_string(*growing) + " of the input is not free";
  return {};
}

std::optional<int64_t> capacity(const TensorType& input, const TensorType& output, size_t dim, const Ranges& symbols) {
  const Expr &past = input.shape[dim], &present = output.shape[dim];
  for (const int64_t c : {bounds(past, symbols).hi, bounds(present, symbols).hi})
    if (c < kNotSaid && provably_le(past, c, symbols) && provably_le(present, c, symbols)) return c;
  return std::nullopt;
}

Result<> declare_states(Graph& g, const std::vector<std::string>& wanted) {
  Declaration declaration(g);
  for (const std::string& w : wanted) DLC_CHECK(declaration.add(w));
  if (!wanted.empty()) use_ranges(g);
  return {};
}

}  // namespace dlc
