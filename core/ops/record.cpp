#include "dlc/ops/record.h"

#include <fmt/format.h>

#include <set>

#include "core/ops/bind.h"
#include "core/ops/check.h"
#include "core/ops/embedded.h"
#include "core/ops/parser.h"
#include "core/ops/statements.h"

namespace dlc {

std::string to_string(const TensorType& t) {
  std::string dims;
  for (const Expr& e : t.shape) dims += (dims.empty() ? "" : ",") + to_string(e);
  return to_string(t.dtype) + "[" + dims + "]";
}

Record::Record(std::shared_ptr<const detail::RecordAst> ast) : ast_(std::move(ast)) {
  for (const auto& o : ast_->operands) operands_.push_back({o.name, o.type.name, o.optional, o.variadic});
  for (const auto& o : ast_->results) results_.push_back({o.name, o.type.name, o.optional, o.variadic});
  for (const auto& a : ast_->attributes)
    attributes_.push_back(
        {a.name, a.initial.empty() && a.kind != detail::AttrDecl::Kind::axes, a.list, detail::print(a)});
}

const std::string& Record::name() const { return ast_->name; }
const std::vector<OperandInfo>& Record::operands() const { return operands_; }
const std::vector<OperandInfo>& Record::results() const { return results_; }
const std::vector<AttrInfo>& Record::attributes() const { return attributes_; }
bool Record::is_extern() const { return ast_->is_extern; }
std::string Record::print() const { return detail::print(*ast_); }

namespace detail {

struct Text {
  std::string name;
  std::string_view text;
};

// Parses all texts before any name is checked: a record may use a def of a later file.
struct RecordSetBuilder {
  static Result<RecordSet> build(const std::vector<Text>& texts, const RecordSet* base) {
    RecordSet set;
    auto defs = std::make_shared<DefTable>();
    if (base) {
      set.records_ = base->records_;
      if (base->defs_) defs->defs = base->defs_->defs;
    }
    std::vector<std::shared_ptr<const RecordAst>> fresh;
    std::vector<std::string> fresh_defs;
    std::set<std::string> seen_defs, seen_records;  // two namespaces: op sigmoid uses def sigmoid
    for (const Text& t : texts) {
      DLC_TRY(ParsedFile parsed, parse_ops(t.text, t.name));
      for (DefAst& d : parsed.defs) {
        if (!seen_defs.insert(d.name).second)
          return fail(loc_of(d.file, d.pos), fmt::format("`{}` is defined twice", d.name));
        fresh_defs.push_back(d.name);
        defs->defs.insert_or_assign(d.name, std::move(d));
      }
      for (RecordAst& r : parsed.records) {
        if (!seen_records.insert(r.name).second)
          return fail(loc_of(r.file, r.pos), fmt::format("`{}` is defined twice", r.name));
        fresh.push_back(std::make_shared<const RecordAst>(std::move(r)));
      }
    }
    Error errors;
    for (const std::string& d : fresh_defs)
      if (auto ok = check(defs->defs.at(d), *defs); !ok) errors.add(std::move(ok).error());
    if (auto ok = check_cycles(fresh_defs, *defs); !ok) errors.add(std::move(ok).error());
    for (const auto& r : fresh) {
      if (auto ok = check(*r, *defs); !ok) errors.add(std::move(ok).error());
      set.records_.insert_or_assign(r->name, Record(r));
    }
    if (!errors.empty()) return std::unexpected(std::move(errors));
    set.defs_ = std::move(defs);
    return set;
  }
};

}  // namespace detail

namespace {

struct Builtin {
  RecordSet set;
  Error errors;
};

const Builtin& load_builtin() {
  static const Builtin loaded = [] {
    std::vector<detail::Text> texts;
    for (const auto* f = detail::kBuiltinRecords; f->name; ++f) texts.push_back({f->name, f->text});
    Builtin b;
    if (auto r = detail::RecordSetBuilder::build(texts, nullptr)) {
      b.set = std::move(*r);
    } else {
      b.errors = std::move(r).error();
    }
    return b;
  }();
  return loaded;
}

}  // namespace

const RecordSet& RecordSet::builtin() { return load_builtin().set; }
const Error& RecordSet::builtin_errors() { return load_builtin().errors; }

Result<RecordSet> RecordSet::parse(std::string_view text, const std::string& file, const RecordSet* base) {
  return detail::RecordSetBuilder::build({{file, text}}, base);
}

const Record* RecordSet::find(std::string_view name) const {
  const auto it = records_.find(name);
  return it == records_.end() ? nullptr : &it->second;
}

std::vector<std::string> RecordSet::names() const {
  std::vector<std::string> out;
  for (const auto& [name, r] : records_) out.push_back(name);
  return out;
}

const detail::DefTable& RecordSet::defs() const {
  static const detail::DefTable kNone;
  return defs_ ? *defs_ : kNone;
}

Result<Kernel> RecordSet::instantiate(const Record& record, std::span<const Operand> operands, const Attrs& attrs,
                                      const Ranges& ranges, const Loc& where) const {
  const detail::RecordAst& ast = record.ast();
  detail::Symbols symbols;
  symbols.owner = ast.name;
  symbols.file = ast.file;
  symbols.where = where;
  symbols.defs = &defs();
  symbols.ranges = ranges;
  for (const detail::Statement& s : ast.body) detail::collect_lets(s, symbols.lets);
  Kernel k;
  k.name = ast.name;
  if (!where.node.empty()) k.locations.push_back(where.node);
  DLC_CHECK(detail::bind_signature(ast, operands, attrs, symbols, k));
  if (!ast.is_extern) DLC_CHECK(detail::StatementBuilder(symbols, k).build(ast.body));
  return k;
}

std::vector<TensorType> result_types(const Kernel& k) {
  std::vector<TensorType> out;
  for (int i : k.outputs)
    out.push_back({k.tensors[static_cast<size_t>(i)].dtype, k.tensors[static_cast<size_t>(i)].shape});
  return out;
}

}  // namespace dlc
