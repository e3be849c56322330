// CompiledModel as a .dlca. docs/artifact.md describes the layout.
#include "dlc/plugin/model_file.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "dlc/base/checked.h"
#include "dlc/graph/control.h"
#include "dlc/graph/state.h"
#include "dlc/io/json.h"

namespace dlc {

namespace {

using nlohmann::ordered_json;

ordered_json type_json(const TensorType& t) {
  ordered_json shape = ordered_json::array();
  for (const Expr& d : t.shape) {
    if (const auto c = d.constant())
      shape.push_back(*c);
    else
      shape.push_back(to_string(d));
  }
  return {{"dtype", to_string(t.dtype)}, {"shape", shape}};
}

ordered_json ports_json(const std::vector<Port>& ports) {
  ordered_json list = ordered_json::array();
  for (const Port& p : ports) {
    ordered_json j{{"name", p.name}};
    j.update(type_json(p.type));
    list.push_back(std::move(j));
  }
  return list;
}

std::string section_name(size_t partition, std::string_view what) { return fmt::format("p{}.{}", partition, what); }

ordered_json symbols_json(const Ranges& symbols) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, r] : symbols) {
    ordered_json s{{"name", name}};
    if (r.bounds.lo != Interval::kNegInf) s["min"] = r.bounds.lo;
    if (r.bounds.hi != Interval::kPosInf) s["max"] = r.bounds.hi;
    if (r.upper != nullptr) s["upper"] = to_string(Expr(r.upper));
    if (r.divisible_by != 1) s["divisible_by"] = r.divisible_by;
    list.push_back(std::move(s));
  }
  return list;
}

// What a model and each of its bodies have, without partitions.
ordered_json graph_json(const CompiledGraph& g) {
  ordered_json j{
      {"symbols", symbols_json(g.symbols)}, {"inputs", ports_json(g.inputs)}, {"outputs", ports_json(g.outputs)}};
  for (const StatePair& s : g.states) j["states"].push_back({{"input", s.input}, {"output", s.output}});
  j["partitions"] = ordered_json::array();
  return j;
}

// `next`: the number of the next partition's sections. `offset_of`: where a constant is in the section of weights.
Result<ordered_json> partitions_json(const CompiledGraph& g, size_t& next,
                                     const std::function<Result<uint64_t>(const Tensor&)>& offset_of) {
  ordered_json list = ordered_json::array();
  for (const CompiledPartition& p : g.partitions) {
    const size_t number = next++;
    ordered_json j{{"device", p.device}, {"inputs", p.inputs}, {"outputs", p.outputs}};
    if (!p.is_control()) j["program"] = section_name(number, "program");
    if (!p.executable.empty()) j["executable"] = section_name(number, "executable");
    j["report"] = section_name(number, "report.json");
    j["weights"] = ordered_json::array();
    for (const auto& [name, t] : p.compiled_weights()) {
      DLC_TRY(const uint64_t offset, offset_of(t));
      j["weights"].push_back(
          {{"name", name}, {"dtype", to_string(t.dtype())}, {"shape", t.shape()}, {"offset", offset}});
    }
    if (p.is_control()) {
      ordered_json c{{"op", p.control.op},
                     {"carried", p.control.carried},
                     {"outputs", ordered_json::array()},
                     {"bodies", ordered_json::array()}};
      for (const CompiledControl::Given& g : p.control.outputs) {
        ordered_json o{{"result", g.result}};
        o.update(type_json(g.type));
        c["outputs"].push_back(std::move(o));
      }
      for (const CompiledGraph& body : p.control.bodies) {
        ordered_json b = graph_json(body);
        DLC_TRY(b["partitions"], partitions_json(body, next, offset_of));
        c["bodies"].push_back(std::move(b));
      }
      j["control"] = std::move(c);
    }
    list.push_back(std::move(j));
  }
  return list;
}

// Reading: every access of the JSON is checked, since a checksum does not say who wrote it.
class Reader {
 public:
  explicit Reader(const Artifact& a) : a_(a) {}

  Result<CompiledModel> read() {
    CompiledModel m;
    const ordered_json meta = ordered_json::parse(a_.meta(), nullptr, false);
    if (!meta.is_object()) return bad("meta");
    DLC_TRY(m.name, text(meta, "name"));
    const auto hw = meta.find("hardware");
    if (hw == meta.end()) return bad("hardware");
    DLC_TRY(m.hardware_name, text(*hw, "name"));
    DLC_TRY(m.arch_hash, text(*hw, "arch_hash"));
    DLC_TRY(m.features, texts(*hw, "features"));
    DLC_TRY(m.hardware_text, section("hardware.yaml"));
    DLC_TRY(m.explanation, json_section("explain.json"));
    DLC_TRY(weights_, a_.load("weights"));
    DLC_TRY(static_cast<CompiledGraph&>(m), graph(meta, 0));
    return m;
  }

 private:
  std::unexpected<Error> bad(std::string_view key) const {
    return fail({a_.path(), 0, 0, {}}, fmt::format("the artifact's '{}' is not understood", key),
                "compile the model again");
  }
  Result<std::string> text(const ordered_json& j, const char* key) const {
    if (!j.is_object() || !j.contains(key) || !j[key].is_string()) return bad(key);
    return j[key].get<std::string>();
  }
  Result<std::vector<std::string>> texts(const ordered_json& j, const char* key) const {
    if (!j.is_object() || !j.contains(key) || !j[key].is_array()) return bad(key);
    std::vector<std::string> out;
    for (const auto& x : j[key]) {
      if (!x.is_string()) return bad(key);
      out.push_back(x.get<std::string>());
    }
    return out;
  }
  Result<std::string> section(const std::string& name) const {
    DLC_TRY(const auto bytes, a_.section(name));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // A section whose readers parse it.
  Result<std::string> json_section(const std::string& name) const {
    DLC_TRY(std::string text, section(name));
    if (!is_shallow_json(text)) return bad(name);
    return text;
  }
  // A number that fits, at least `least`.
  static std::optional<int64_t> integer(const ordered_json& j, int64_t least) {
    if (!j.is_number_integer()) return std::nullopt;
    if (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(Interval::kPosInf)) return std::nullopt;
    const auto v = j.get<int64_t>();
    return v < least ? std::nullopt : std::optional(v);
  }

  Result<Ranges> symbols(const ordered_json& meta) const {
    Ranges out;
    if (!meta.contains("symbols") || !meta["symbols"].is_array()) return bad("symbols");
    for (const auto& s : meta["symbols"]) {
      DLC_TRY(const std::string name, text(s, "name"));
      Range r;
      for (const auto& [key, to, least] :
           {std::tuple("min", &r.bounds.lo, int64_t{0}), std::tuple("max", &r.bounds.hi, int64_t{0}),
            std::tuple("divisible_by", &r.divisible_by, int64_t{1})}) {
        if (!s.contains(key)) continue;
        const auto v = integer(s[key], least);
        if (!v) return bad(key);
        *to = *v;
      }
      if (r.bounds.lo > r.bounds.hi) return bad("max");
      if (s.contains("upper")) {
        DLC_TRY(const std::string upper, text(s, "upper"));
        DLC_TRY(const Expr e, parse_expr(upper));
        r.upper = e.node();
      }
      if (!out.emplace(name, r).second) return bad("symbols");
    }
    return out;
  }

  Result<TensorType> type(const ordered_json& j) const {
    DLC_TRY(const std::string name, text(j, "dtype"));
    const auto dtype = parse_dtype(name);
    if (!dtype || !j.contains("shape") || !j["shape"].is_array()) return bad("dtype");
    TensorType t{*dtype, {}};
    for (const auto& d : j["shape"]) {
      if (const auto size = integer(d, 0)) {
        t.shape.emplace_back(*size);
      } else if (d.is_string()) {
        DLC_TRY(const Expr e, parse_expr(d.get<std::string>()));
        t.shape.push_back(e);
      } else {
        return bad("shape");
      }
    }
    return t;
  }

  Result<std::vector<Port>> ports(const ordered_json& meta, const char* key) const {
    if (!meta.contains(key) || !meta[key].is_array()) return bad(key);
    std::vector<Port> out;
    for (const auto& p : meta[key]) {
      Port port;
      DLC_TRY(port.name, text(p, "name"));
      DLC_TRY(port.type, type(p));
      out.push_back(std::move(port));
    }
    return out;
  }

  // Of ports that can be one, each in one state.
  Result<> states(const ordered_json& j, CompiledGraph& g) const {
    const auto list = j.find("states");
    if (list == j.end()) return {};
    if (!list->is_array()) return bad("states");
    for (const ordered_json& s : *list) {
      StatePair pair;
      DLC_TRY(pair.input, text(s, "input"));
      DLC_TRY(pair.output, text(s, "output"));
      const auto in = std::ranges::find(g.inputs, pair.input, &Port::name);
      const auto out = std::ranges::find(g.outputs, pair.output, &Port::name);
      const auto is_known = [&](const StatePair& o) { return o.input == pair.input || o.output == pair.output; };
      if (in == g.inputs.end() || out == g.outputs.end() || !not_a_state(in->type, out->type, g.symbols).empty() ||
          std::ranges::any_of(g.states, is_known))
        return bad("states");
      g.states.push_back(std::move(pair));
    }
    return {};
  }

  // A model, or a body in `depth` others.
  Result<CompiledGraph> graph(const ordered_json& j, int depth) const {
    CompiledGraph g;
    DLC_TRY(g.symbols, symbols(j));
    DLC_TRY(g.inputs, ports(j, "inputs"));
    DLC_TRY(g.outputs, ports(j, "outputs"));
    DLC_CHECK(states(j, g));
    const auto parts = j.find("partitions");
    if (parts == j.end() || !parts->is_array()) return bad("partitions");
    for (const ordered_json& p : *parts) {
      DLC_TRY(CompiledPartition part, partition(p, depth));
      g.partitions.push_back(std::move(part));
    }
    return g;
  }

  Result<Tensor> weight(const ordered_json& j) const {
    DLC_TRY(const TensorType t, type(j));
    std::vector<int64_t> shape;
    for (const Expr& d : t.shape) {
      if (!d.constant()) return bad("weights");
      shape.push_back(*d.constant());
    }
    if (!j.contains("offset") || !j["offset"].is_number_unsigned()) return bad("weights");
    const auto offset = j["offset"].get<uint64_t>();
    const size_t size = weights_.bytes.size();
    if (offset > size) return bad("weights");
    DLC_TRY(Tensor w, Tensor::wrap(t.dtype, std::move(shape), weights_.bytes.data() + offset, weights_.owner));
    if (w.byte_size() > size - offset) return bad("weights");
    return w;
  }

  Result<CompiledControl> control(const ordered_json& j, int depth) const {
    CompiledControl c;
    DLC_TRY(c.op, text(j, "op"));
    const auto carried = j.contains("carried") ? integer(j["carried"], 0) : std::nullopt;
    if (!carried) return bad("carried");
    c.carried = *carried;
    if (!j.contains("outputs") || !j["outputs"].is_array()) return bad("control");
    for (const ordered_json& o : j["outputs"]) {
      DLC_TRY(TensorType t, type(o));
      const auto result = o.contains("result") ? integer(o["result"], 0) : std::nullopt;
      if (!result) return bad("result");
      c.outputs.push_back({static_cast<size_t>(*result), std::move(t)});
    }
    if (!j.contains("bodies") || !j["bodies"].is_array() || j["bodies"].size() != body_names(c.op).size() ||
        body_names(c.op).empty() || depth >= kMaxBodyDepth)
      return bad("bodies");
    for (const ordered_json& b : j["bodies"]) {
      DLC_TRY(CompiledGraph body, graph(b, depth + 1));
      c.bodies.push_back(std::move(body));
    }
    return c;
  }

  // A control partition's names, numbers of values and bodies fit each other, so that running it needs no checks.
  static bool fits(const CompiledPartition& p) {
    const CompiledControl& c = p.control;
    const size_t leading = leading_operands(c.op), extra = c.op == "loop" ? 1 : 0;
    const auto carried = static_cast<size_t>(c.carried);
    if (p.inputs.size() < leading + carried || (c.op == "if" && carried > 0)) return false;
    const size_t results = c.bodies[0].outputs.size() - extra;  // of none it is a large number, which nothing has
    const auto is_body = [&](const CompiledGraph& body) {
      return body.inputs.size() == p.inputs.size() - leading + extra && body.outputs.size() == results + extra &&
             body.outputs.size() >= extra;
    };
    const auto is_output = [&](const CompiledControl::Given& g) { return g.result < results; };
    return carried <= results && std::ranges::all_of(c.bodies, is_body) && std::ranges::all_of(c.outputs, is_output);
  }

  Result<CompiledPartition> partition(const ordered_json& j, int depth) const {
    CompiledPartition p;
    DLC_TRY(p.device, text(j, "device"));
    DLC_TRY(p.inputs, texts(j, "inputs"));
    DLC_TRY(p.outputs, texts(j, "outputs"));
    if (j.contains("control")) {
      DLC_TRY(p.control, control(j["control"], depth));
      if (p.control.outputs.size() != p.outputs.size()) return bad("control");
    } else {
      DLC_TRY(const std::string program, text(j, "program"));
      DLC_TRY(p.program, section(program));
    }
    if (j.contains("executable")) {
      DLC_TRY(const std::string executable, text(j, "executable"));
      DLC_TRY(p.executable, a_.section(executable));
      p.owner = a_.owner();
    }
    DLC_TRY(const std::string report, text(j, "report"));
    DLC_TRY(p.report, json_section(report));
    if (!j.contains("weights") || !j["weights"].is_array()) return bad("weights");
    for (const auto& w : j["weights"]) {
      DLC_TRY(const std::string name, text(w, "name"));
      DLC_TRY(Tensor t, weight(w));
      p.weights.emplace_back(name, std::move(t));
    }
    if (p.is_control() && !fits(p)) return bad("control");
    return p;
  }

  const Artifact& a_;
  Artifact::Loaded weights_;
};

}  // namespace

Result<ModelFile> ModelFile::create(const std::string& path) {
  DLC_TRY(ArtifactWriter file, ArtifactWriter::create(path));
  file.begin("weights");
  return ModelFile(std::move(file));
}

Result<> ModelFile::reserve(size_t bytes) {
  view_begin_ = file_.position();
  DLC_TRY(view_, file_.map(bytes));
  return {};
}

Result<uint64_t> ModelFile::write(const Tensor& t) {
  const uint64_t offset = file_.position();
  DLC_CHECK(file_.append({t.bytes(), t.byte_size()}));
  file_.align(kConstantAlign);
  return offset;
}

Result<uint64_t> ModelFile::offset_of(const Tensor& t) {
  const Bytes bytes(t.bytes(), t.byte_size());
  if (const auto known = offsets_.find(bytes); known != offsets_.end()) return known->second;
  DLC_TRY(const uint64_t offset, write(t));
  offsets_[bytes] = offset;
  return offset;
}

// Only large ones: each is compared with all of its size, which differ in their first bytes nearly always.
constexpr size_t kShared = 4096;

const Tensor* KeptConstants::equal(const Tensor& t) const {
  const auto [begin, end] = by_size_.equal_range(t.byte_size());
  for (auto it = begin; it != end; ++it)
    if (it->second.dtype() == t.dtype() && it->second.shape() == t.shape() &&
        std::memcmp(it->second.bytes(), t.bytes(), t.byte_size()) == 0)
      return &it->second;
  return nullptr;
}

void KeptConstants::add(const Tensor& kept) {
  if (kept.byte_size() >= kShared) by_size_.emplace(kept.byte_size(), kept);
}

Result<Tensor> ModelFile::keep(const Tensor& t, bool is_lasting) {
  if (t.byte_size() == 0) return Tensor::make(t.dtype(), t.shape());
  if (const Tensor* same = is_lasting ? nullptr : kept_.equal(t)) return *same;
  DLC_TRY(const uint64_t offset, is_lasting ? offset_of(t) : write(t));
  // What the view does not have stays where the caller has it, or else has a view of its own.
  if (offset < view_begin_ || offset + t.byte_size() > view_begin_ + view_.bytes.size()) {
    if (is_lasting) return t;
    return fail({}, "internal error: a constant without room in the artifact");
  }
  DLC_TRY(Tensor kept, Tensor::wrap(t.dtype(), t.shape(), view_.bytes.data() + (offset - view_begin_), view_.owner));
  offsets_[Bytes(kept.bytes(), kept.byte_size())] = offset;
  if (!is_lasting) kept_.add(kept);
  return kept;
}

Result<> ModelFile::finish(const CompiledModel& m) {
  ordered_json meta{{"format", "dlca 3"},
                    {"name", m.name},
                    {"hardware", {{"name", m.hardware_name}, {"arch_hash", m.arch_hash}, {"features", m.features}}}};
  meta.update(graph_json(m));
  size_t next = 0;
  DLC_TRY(meta["partitions"], partitions_json(m, next, [&](const Tensor& t) { return offset_of(t); }));
  DLC_CHECK(file_.add("hardware.yaml", m.hardware_text));
  const auto all = all_partitions(m);
  for (size_t i = 0; i < all.size(); ++i) {
    const CompiledPartition& p = *all[i];
    if (!p.is_control()) DLC_CHECK(file_.add(section_name(i, "program"), p.compiled_program()));
    if (!p.executable.empty()) {
      file_.begin(section_name(i, "executable"));
      DLC_CHECK(file_.append(p.executable));
    }
    DLC_CHECK(file_.add(section_name(i, "report.json"), p.report));
  }
  DLC_CHECK(file_.add("explain.json", m.explanation));
  return file_.finish(meta.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Result<> CompiledModel::write(const std::string& path) const {
  DLC_TRY(ModelFile file, ModelFile::create(path));
  return file.finish(*this);
}

Result<> MemoryStore::reserve(size_t bytes) {
  DLC_TRY(HugePages memory, HugePages::allocate(static_cast<int64_t>(bytes)));
  memory_ = std::make_shared<const HugePages>(std::move(memory));
  size_ = bytes;
  used_ = 0;
  return {};
}

Result<Tensor> MemoryStore::keep(const Tensor& t, bool is_lasting) {
  if (t.byte_size() == 0) return Tensor::make(t.dtype(), t.shape());
  if (const Tensor* same = is_lasting ? nullptr : kept_.equal(t)) return *same;
  if (t.byte_size() > size_ - used_) {
    if (is_lasting) return t;
    return fail({}, "internal error: a constant without room in memory");
  }
  std::byte* to = memory_->data() + used_;
  std::memcpy(to, t.bytes(), t.byte_size());
  used_ = std::min(size_, used_ + constant_room(t.byte_size()));
  DLC_TRY(Tensor kept, Tensor::wrap(t.dtype(), t.shape(), to, memory_));
  if (!is_lasting) kept_.add(kept);
  return kept;
}

Result<CompiledModel> CompiledModel::read(const std::string& path) {
  DLC_TRY(const Artifact a, Artifact::open(path));
  return Reader(a).read();
}

}  // namespace dlc
