// Einsum: diagonals, sums and matrix products of two operands at a time.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// A value whose dims are named by letters; dims of an ellipsis are '0', '1', ... counted from the last.
struct Term {
  ValueId value = kNoValue;
  std::string dims;
};

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Einsum {
 public:
  explicit Einsum(const NodeView& n) : n_(n) {}

  Result<Values> run() {
    DLC_TRY(Equation e, read());
    std::vector<Term> terms;
    for (size_t i = 0; i < e.terms.size(); ++i) {
      Term t{n_.in(i), e.terms[i]};
      DLC_CHECK(take_diagonals(t));
      terms.push_back(std::move(t));
    }
    DLC_CHECK(drop_broadcast(terms));
    Term left = std::move(terms[0]);
    for (size_t i = 1; i <= terms.size(); ++i) {
      std::string later = e.result;
      for (size_t j = i; j < terms.size(); ++j) later += terms[j].dims;
      DLC_CHECK(sum_out(left, later));
      if (i == terms.size()) break;
      std::string others = e.result + left.dims;
      for (size_t j = i + 1; j < terms.size(); ++j) others += terms[j].dims;
      DLC_CHECK(sum_out(terms[i], others));
      later.clear();
      for (size_t j = i + 1; j < terms.size(); ++j) later += terms[j].dims;
      DLC_CHECK(multiply(left, terms[i], e.result + later));
    }
    DLC_CHECK(order(left, e.result));
    return Values{left.value};
  }

 private:
  const std::vector<Expr>& shape(const Term& t) const { return n_.graph().value(t.value).type.shape; }
  static bool in(const std::string& dims, char c) { return dims.find(c) != std::string::npos; }

  // The equation with its ellipses spelled out and its result made explicit.
  Result<Equation> read() const {
    DLC_TRY(std::string text, n_.attr_string("equation", {}));
    std::erase(text, ' ');
    const size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    Equation e;
    for (size_t at = 0; at <= left.size();) {
      const size_t comma = std::min(left.find(',', at), left.size());
      e.terms.push_back(left.substr(at, comma - at));
      at = comma + 1;
    }
    if (e.terms.size() != n_.input_count()) return n_.error(fmt::format("equation '{}' does not fit the inputs", text));
    std::map<char, int> uses;
    size_t widest = 0;
    for (size_t i = 0; i < e.terms.size(); ++i) {
      if (!n_.has(i)) return n_.error(fmt::format("input {} is missing", i));
      const auto rank = static_cast<size_t>(n_.rank(i));
      const size_t dots = e.terms[i].find("...");
      const size_t letters = e.terms[i].size() - (dots == std::string::npos ? 0 : 3);
      if (letters > rank || (dots == std::string::npos && letters != rank) || rank - letters > 9)
        return n_.error(fmt::format("'{}' does not fit the rank {} of input {}", e.terms[i], rank, i));
      if (dots != std::string::npos) {
        e.terms[i].replace(dots, 3, ellipsis(rank - letters));
        widest = std::max(widest, rank - letters);
      }
      for (const char c : e.terms[i]) ++uses[c];
    }
    if (arrow == std::string::npos) {
      e.result = ellipsis(widest);
      for (const auto& [c, count] : uses)
        if (is_letter(c) && count == 1) e.result += c;
    } else {
      e.result = text.substr(arrow + 2);
      if (const size_t dots = e.result.find("..."); dots != std::string::npos)
        e.result.replace(dots, 3, ellipsis(widest));
    }
    for (size_t i = 0; i < e.result.size(); ++i)
      if (!uses.contains(e.result[i]) || e.result.find(e.result[i], i + 1) != std::string::npos)
        return n_.error(fmt::format("equation '{}' has a wrong result", text));
    for (const auto& [c, count] : uses)
      if (!is_letter(c) && !(c >= '0' && c <= '9')) return n_.error(fmt::format("equation '{}' is not one", text));
    return e;
  }

  static std::string ellipsis(size_t count) {
    std::string s;
    for (size_t i = count; i-- > 0;) s += static_cast<char>('0' + i);
    return s;
  }

  // A letter that stands more than once: of two of its dims, side by side, every (n + 1)-th element.
  Result<> take_diagonals(Term& t) {
    for (size_t i = 0; i < t.dims.size(); ++i) {
      const size_t again = t.dims.find(t.dims[i], i + 1);
      if (again == std::string::npos) continue;
      std::vector<Expr> perm;
      std::string rest;
      for (size_t d = 0; d < t.dims.size(); ++d) {
        if (d == i || d == again) continue;
        perm.emplace_back(static_cast<int64_t>(d));
        rest += t.dims[d];
      }
      perm.emplace_back(static_cast<int64_t>(i));
      perm.emplace_back(static_cast<int64_t>(again));
      const char c = t.dims[i];
      DLC_TRY(t.value, n_.emit("transpose", {t.value}, {{"perm", perm}}));
      std::vector<Expr> dims = shape(t);
      const Expr extent = dims.back();
      dims.pop_back();
      dims.back() = extent * extent;
      DLC_TRY(t.value, n_.emit("reshape", {t.value}, {{"shape", dims}}));
      std::vector<Expr> start(dims.size(), Expr(0)), step(dims.size(), Expr(1));
      step.back() = extent + 1;
      DLC_TRY(t.value, n_.emit("slice", {t.value}, {{"start", start}, {"stop", dims}, {"step", step}}));
      t.dims = rest + c;
      i = static_cast<size_t>(-1);
    }
    return {};
  }

  // A dim of 1 that is larger in another operand broadcasts: it says nothing.
  Result<> drop_broadcast(std::vector<Term>& terms) {
    std::map<char, bool> wide;
    for (const Term& t : terms)
      for (size_t i = 0; i < t.dims.size(); ++i) wide[t.dims[i]] |= !shape(t)[i].is(1);
    for (Term& t : terms) {
      std::vector<Expr> axes;
      std::string kept;
      for (size_t i = 0; i < t.dims.size(); ++i) {
        if (shape(t)[i].is(1) && wide[t.dims[i]])
          axes.emplace_back(static_cast<int64_t>(i));
        else
          kept += t.dims[i];
      }
      if (axes.empty()) continue;
      DLC_TRY(t.value, n_.emit("squeeze", {t.value}, {{"axes", axes}}));
      t.dims = kept;
    }
    return {};
  }

  Result<> sum_out(Term& t, const std::string& kept) {
    std::vector<Expr> axes;
    for (size_t i = 0; i < t.dims.size(); ++i)
      if (!in(kept, t.dims[i])) axes.emplace_back(static_cast<int64_t>(i));
    if (axes.empty()) return {};
    DLC_TRY(t.value, n_.emit("reduce_sum", {t.value}, {{"axes", axes}}));
    std::erase_if(t.dims, [&](char c) { return !in(kept, c); });
    return {};
  }

  Result<> order(Term& t, const std::string& wanted) {
    if (t.dims == wanted) return {};
    std::vector<Expr> perm;
    for (const char c : wanted) perm.emplace_back(static_cast<int64_t>(t.dims.find(c)));
    DLC_TRY(t.value, n_.emit("transpose", {t.value}, {{"perm", perm}}));
    t.dims = wanted;
    return {};
  }

  // left = the product of both, summed over what only they have: one matrix product for each point of the shared dims.
  Result<> multiply(Term& left, Term& right, const std::string& kept) {
    std::string batch, rows, columns, depth;
    for (const char c : left.dims) (in(right.dims, c) ? (in(kept, c) ? batch : depth) : rows) += c;
    for (const char c : right.dims)
      if (!in(left.dims, c)) columns += c;
    DLC_CHECK(order(left, batch + rows + depth));
    DLC_CHECK(order(right, batch + depth + columns));
    const std::vector<Expr> a = shape(left), b = shape(right);
    const auto product = [](const std::vector<Expr>& dims, size_t from, size_t count) {
      Expr p(1);
      for (size_t i = from; i < from + count; ++i) p = p * dims[i];
      return p;
    };
    const Expr groups = product(a, 0, batch.size()), k = product(a, batch.size() + rows.size(), depth.size());
    const Expr m = product(a, batch.size(), rows.size()), w = product(b, batch.size() + depth.size(), columns.size());
    DLC_TRY(const ValueId x, n_.emit("reshape", {left.value}, {{"shape", std::vector<Expr>{groups, m, k}}}));
    DLC_TRY(const ValueId y, n_.emit("reshape", {right.value}, {{"shape", std::vector<Expr>{groups, k, w}}}));
    DLC_TRY(const ValueId z, n_.emit("matmul", {x, y}));
    std::vector<Expr> dims(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(batch.size() + rows.size()));
    dims.insert(dims.end(), b.begin() + static_cast<std::ptrdiff_t>(batch.size() + depth.size()), b.end());
    DLC_TRY(left.value, n_.emit("reshape", {z}, {{"shape", dims}}));
    left.dims = batch + rows + columns;
    return {};
  }

  const NodeView& n_;
};

Result<Values> einsum(const NodeView& n) {
  if (n.input_count() == 0) return n.error("needs at least one input");
  return Einsum(n).run();
}

constexpr OpEntry kTable[] = {
    {"", "Einsum", einsum, "t*"},
};

}  // namespace

std::span<const OpEntry> einsum_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
