// CompiledModel as a .dlca. docs/artifact.md describes the layout.
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "dlc/base/checked.h"
#include "dlc/io/artifact.h"
#include "dlc/io/json.h"
#include "dlc/plugin/compiled.h"

namespace dlc {

namespace {

using nlohmann::ordered_json;

constexpr size_t kWeightAlign = 64;

ordered_json ports_json(const std::vector<Port>& ports) {
  ordered_json list = ordered_json::array();
  for (const Port& p : ports) {
    ordered_json shape = ordered_json::array();
    for (const Expr& d : p.type.shape) {
      if (const auto c = d.constant())
        shape.push_back(*c);
      else
        shape.push_back(to_string(d));
    }
    list.push_back({{"name", p.name}, {"dtype", to_string(p.type.dtype)}, {"shape", shape}});
  }
  return list;
}

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

// All weights one behind the other, where they lie; a tensor that two partitions share is stored once.
class WeightWriter {
 public:
  size_t add(const Tensor& t) {
    const auto [it, is_new] = offsets_.emplace(std::pair(t.bytes(), t.byte_size()), size_);
    if (is_new) {
      static constexpr std::byte kZeros[kWeightAlign] = {};
      const size_t rest = (kWeightAlign - t.byte_size() % kWeightAlign) % kWeightAlign;
      parts_.emplace_back(t.bytes(), t.byte_size());
      parts_.emplace_back(kZeros, rest);
      size_ += t.byte_size() + rest;
    }
    return it->second;
  }
  std::vector<std::span<const std::byte>> parts() const { return parts_; }

 private:
  std::map<std::pair<const std::byte*, size_t>, size_t> offsets_;  // looked up only, never iterated
  std::vector<std::span<const std::byte>> parts_;
  size_t size_ = 0;
};

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
    DLC_TRY(m.symbols, symbols(meta));
    DLC_TRY(m.inputs, ports(meta, "inputs"));
    DLC_TRY(m.outputs, ports(meta, "outputs"));
    const auto parts = meta.find("partitions");
    if (parts == meta.end() || !parts->is_array()) return bad("partitions");
    DLC_TRY(weights_, a_.section("weights"));
    for (const ordered_json& p : *parts) {
      DLC_TRY(CompiledPartition part, partition(p));
      m.partitions.push_back(std::move(part));
    }
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

  Result<Tensor> weight(const ordered_json& j) const {
    DLC_TRY(const TensorType t, type(j));
    std::vector<int64_t> shape;
    for (const Expr& d : t.shape) {
      if (!d.constant()) return bad("weights");
      shape.push_back(*d.constant());
    }
    if (!j.contains("offset") || !j["offset"].is_number_unsigned()) return bad("weights");
    const auto offset = j["offset"].get<uint64_t>();
    if (offset > weights_.size()) return bad("weights");
    DLC_TRY(Tensor w, Tensor::wrap(t.dtype, std::move(shape), weights_.data() + offset, a_.owner()));
    if (w.byte_size() > weights_.size() - offset) return bad("weights");
    return w;
  }

  Result<CompiledPartition> partition(const ordered_json& j) const {
    CompiledPartition p;
    DLC_TRY(p.device, text(j, "device"));
    DLC_TRY(p.inputs, texts(j, "inputs"));
    DLC_TRY(p.outputs, texts(j, "outputs"));
    DLC_TRY(const std::string program, text(j, "program"));
    DLC_TRY(p.program, section(program));
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
    return p;
  }

  const Artifact& a_;
  std::span<const std::byte> weights_;
};

}  // namespace

Result<> CompiledModel::write(const std::string& path) const {
  ArtifactWriter out;
  WeightWriter all;
  ordered_json meta{{"format", "dlca 1"},
                    {"name", name},
                    {"hardware", {{"name", hardware_name}, {"arch_hash", arch_hash}, {"features", features}}},
                    {"symbols", symbols_json(symbols)},
                    {"inputs", ports_json(inputs)},
                    {"outputs", ports_json(outputs)},
                    {"partitions", ordered_json::array()}};
  out.add("hardware.yaml", hardware_text);
  for (size_t i = 0; i < partitions.size(); ++i) {
    const CompiledPartition& p = partitions[i];
    const auto section = [&](std::string_view what) { return fmt::format("p{}.{}", i, what); };
    ordered_json j{{"device", p.device}, {"inputs", p.inputs}, {"outputs", p.outputs}, {"program", section("program")}};
    out.add(section("program"), p.compiled_program());
    if (!p.executable.empty()) {
      j["executable"] = section("executable");
      out.add(section("executable"), p.executable);
    }
    j["report"] = section("report.json");
    out.add(section("report.json"), p.report);
    j["weights"] = ordered_json::array();
    for (const auto& [weight, t] : p.compiled_weights())
      j["weights"].push_back({{"name", weight},
                              {"dtype", to_string(t.dtype())},
                              {"shape", t.shape()},
                              {"offset", static_cast<uint64_t>(all.add(t))}});
    meta["partitions"].push_back(std::move(j));
  }
  out.add("explain.json", explanation);
  out.add("weights", all.parts());
  out.set_meta(meta.dump());
  return out.write(path);
}

Result<CompiledModel> CompiledModel::read(const std::string& path) {
  DLC_TRY(const Artifact a, Artifact::open(path));
  return Reader(a).read();
}

}  // namespace dlc
