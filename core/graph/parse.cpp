#include <algorithm>
#include <charconv>

#include "core/graph/names.h"
#include "core/graph/scanner.h"
#include "core/graph/text.h"
#include "dlc/graph/control.h"
#include "dlc/graph/read.h"

namespace dlc {

namespace {

using detail::Scanner;

class Parser {
 public:
  // `prefix`: what the weight table has before the names of this graph's constants.
  Parser(Scanner& in, const GraphReader& reader, std::string prefix = {}, int depth = 0)
      : in_(in), reader_(reader), prefix_(std::move(prefix)), depth_(depth) {
    g_.records = reader.records;
  }

  Result<Graph> file();
  Result<Graph> body(std::string name);

 private:
  Result<> header();
  Result<> braces();
  Result<> statement();
  Result<> input();
  Result<> constant();
  Result<> output();
  Result<> state();
  Result<> node();
  Result<NodeId> control(Node node, const std::vector<std::string>& names, const std::vector<TensorType>& types);
  Result<ValueId> use();
  Result<std::string> new_name();

  Scanner& in_;
  const GraphReader& reader_;
  std::string prefix_;
  int depth_;
  Graph g_;
};

Result<Graph> Parser::file() {
  DLC_CHECK(header());
  DLC_CHECK(in_.expect("graph"));
  DLC_CHECK(in_.expect('@'));
  DLC_TRY(g_.name, in_.name("the graph's name"));
  DLC_CHECK(braces());
  if (!in_.at_end()) return in_.unexpected("the end of the text");
  return std::move(g_);
}

Result<Graph> Parser::body(std::string name) {
  g_.name = std::move(name);
  if (depth_ > kMaxBodyDepth)
    return fail(in_.loc(), "bodies are nested more than " + std::to_string(kMaxBodyDepth) + " deep");
  DLC_CHECK(braces());
  return std::move(g_);
}

Result<> Parser::braces() {
  if (in_.accept('(')) {
    do DLC_CHECK(detail::parse_symbol(in_, g_.symbols));
    while (in_.accept(','));
    DLC_CHECK(in_.expect(')'));
  }
  DLC_CHECK(in_.expect('{'));
  while (!in_.accept('}')) DLC_CHECK(statement());
  return {};
}

Result<> Parser::header() {
  const Loc where = in_.loc();
  DLC_CHECK(in_.expect("dlc.graph"));
  DLC_TRY(auto version, in_.word("the version of the text"));
  if (version != "1")
    return fail(where, "this is graph text of version " + version + "; this dlc reads version 1",
                "use a dlc that writes version 1, or export the model again");
  return {};
}

Result<> Parser::statement() {
  if (in_.peek() == '%') return node();
  if (in_.accept("in")) return input();
  if (in_.accept("const")) return constant();
  if (in_.accept("out")) return output();
  if (in_.accept("state")) return state();
  return in_.unexpected("in, const, out, state, a node or '}'");
}

Result<std::string> Parser::new_name() {
  const Loc where = in_.loc();
  DLC_TRY(auto name, in_.name("a value's name"));
  if (g_.find(name) != kNoValue) return fail(where, "there is already a value called " + name);
  return name;
}

Result<> Parser::input() {
  DLC_CHECK(in_.expect('%'));
  DLC_TRY(auto name, new_name());
  DLC_CHECK(in_.expect(':'));
  DLC_TRY(auto type, in_.type());
  g_.add_input(std::move(name), std::move(type));
  return {};
}

Result<> Parser::constant() {
  DLC_CHECK(in_.expect('@'));
  const Loc where = in_.loc();
  DLC_TRY(auto name, new_name());
  DLC_CHECK(in_.expect(':'));
  DLC_TRY(auto type, in_.type());
  if (in_.accept('=')) {
    DLC_TRY(auto value, in_.elements(type));
    g_.add_constant(std::move(name), std::move(value));
    return {};
  }
  auto value = reader_.weights ? reader_.weights(prefix_ + name, type) : std::nullopt;
  if (!value) return fail(where, "the weight table has no @" + prefix_ + name);
  if (type_of(*value) != type)
    return fail(where, "@" + name + " is " + to_string(type) + " here and " + detail::type_text(*value) +
                           " in the weight table");
  g_.add_constant(std::move(name), *std::move(value));
  return {};
}

Result<ValueId> Parser::use() {
  const Loc where = in_.loc();
  const bool constant = in_.peek() == '@';
  DLC_CHECK(in_.expect(constant ? '@' : '%'));
  DLC_TRY(auto name, in_.name("a value's name"));
  const ValueId v = g_.find(name);
  if (v == kNoValue) return fail(where, "there is no value called " + name, "a value is defined before it is used");
  if (g_.value(v).constant.has_value() != constant)
    return fail(where, name + " is written " + (constant ? "%" : "@") + name + ", since it is " +
                           (constant ? "no constant" : "a constant"));
  return v;
}

Result<> Parser::output() {
  DLC_TRY(ValueId v, use());
  std::string name = g_.value(v).name;
  if (in_.peek() == '"') {
    DLC_TRY(name, in_.string());
  }
  g_.outputs.push_back(v);
  g_.output_names.push_back(std::move(name));
  return {};
}

// state %past -> "present"
Result<> Parser::state() {
  if (depth_ > 0) return fail(in_.loc(), "a body has no states: they belong to the model");
  StatePair s;
  DLC_CHECK(in_.expect('%'));
  DLC_TRY(s.input, in_.name("an input"));
  DLC_CHECK(in_.expect('-'));
  DLC_CHECK(in_.expect('>'));
  DLC_TRY(s.output, in_.string());
  g_.states.push_back(std::move(s));
  return {};
}

Result<> Parser::node() {
  std::vector<std::string> names;
  std::vector<TensorType> types;
  const Loc where = in_.loc();
  do {
    DLC_CHECK(in_.expect('%'));
    const Loc name_at = in_.loc();
    DLC_TRY(auto name, new_name());
    if (std::ranges::find(names, name) != names.end()) return fail(name_at, "there is already a value called " + name);
    DLC_CHECK(in_.expect(':'));
    DLC_TRY(auto type, in_.type());
    names.push_back(std::move(name));
    types.push_back(std::move(type));
  } while (in_.accept(','));
  DLC_CHECK(in_.expect('='));
  DLC_TRY(auto op, in_.word("the name of an op"));
  DLC_CHECK(in_.expect('('));
  std::vector<ValueId> inputs;
  if (!in_.accept(')')) {
    do {
      if (in_.accept("_")) {
        inputs.push_back(kNoValue);
        continue;
      }
      DLC_TRY(ValueId v, use());
      inputs.push_back(v);
    } while (in_.accept(','));
    DLC_CHECK(in_.expect(')'));
  }
  DLC_TRY(Attrs attrs, detail::parse_attributes(in_));
  std::vector<std::string> locations;
  if (in_.accept("loc")) do {
      DLC_TRY(auto l, in_.string());
      locations.push_back(std::move(l));
    } while (in_.accept(','));

  Result<NodeId> id;
  if (body_names(op).empty())
    id = g_.add_node(op, std::move(inputs), std::move(attrs), std::move(locations));
  else
    id = control({op, std::move(inputs), {}, std::move(attrs), std::move(locations)}, names, types);
  if (!id) {
    for (auto& d : id.error().diagnostics)
      if (d.loc.line == 0)
        std::tie(d.loc.file, d.loc.line, d.loc.column) = std::tie(where.file, where.line, where.column);
    return std::unexpected(std::move(id).error());
  }
  const auto& outputs = g_.node(*id).outputs;
  if (outputs.size() != names.size())
    return fail(where, op + " has " + std::to_string(outputs.size()) + " results, not " + std::to_string(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorType& inferred = g_.value(outputs[i]).type;
    if (inferred != types[i])
      return fail(where, "%" + names[i] + " is declared " + to_string(types[i]) + ", but " + op + " gives " +
                             to_string(inferred));
  }
  detail::rename_results(g_, *id, names);
  return {};
}

Result<NodeId> Parser::control(Node node, const std::vector<std::string>& names, const std::vector<TensorType>& types) {
  const auto bodies = body_names(node.op);
  for (size_t b = 0; b < bodies.size(); ++b) {
    DLC_CHECK(in_.expect(bodies[b]));
    DLC_TRY(Graph body, Parser(in_, reader_, detail::body_prefix(prefix_, names[0], node.op, b), depth_ + 1)
                            .body(std::string(bodies[b])));
    node.bodies.push_back(std::make_shared<const Graph>(std::move(body)));
  }
  return g_.add_control(std::move(node), types);
}

}  // namespace

Result<Graph> GraphReader::read(std::string_view text) const {
  Scanner in(text, file);
  return Parser(in, *this).file();
}

Result<Graph> parse_graph(std::string_view text, const std::string& file,
                          const std::function<std::optional<Tensor>(std::string_view)>& weights) {
  GraphReader reader{.file = file};
  if (weights) reader.weights = [&](std::string_view name, const TensorType&) { return weights(name); };
  return reader.read(text);
}

}  // namespace dlc
