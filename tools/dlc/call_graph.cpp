#include "tools/dlc/call_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "dlc/program/program.h"

namespace dlc::cli {

namespace {

class Builder {
 public:
  explicit Builder(const CompiledModel& model) : model_(model) {}

  Result<CallGraph> run() {
    for (const Port& p : model_.inputs) made_[p.name] = {add({p.name, to_string(p.type), "input", -1, -1})};
    for (size_t p = 0; p < model_.partitions.size(); ++p) DLC_CHECK(partition(static_cast<int>(p)));
    for (const Port& p : model_.outputs) connect(p.name, add({p.name, to_string(p.type), "output", -1, -1}));
    out_.edges.assign(edges_.begin(), edges_.end());
    return std::move(out_);
  }

 private:
  int add(CallNode n) {
    out_.nodes.push_back(std::move(n));
    return static_cast<int>(out_.nodes.size()) - 1;
  }
  void connect(const std::string& value, int to) {
    for (const int from : made_[value]) edges_.emplace(from, to);
  }

  Result<> partition(int index) {
    const CompiledPartition& p = model_.partitions[static_cast<size_t>(index)];
    if (p.is_control() || p.device == "reference") {
      const std::string what = p.is_control() ? p.control.op : p.device;
      const int node = add({p.outputs.empty() ? what : p.outputs[0], what, p.device, index, -1});
      for (const std::string& name : p.inputs) connect(name, node);
      for (const std::string& name : p.outputs) made_[name] = {node};
      return {};
    }
    DLC_TRY(const Program program, parse_program(p.program, "program"));
    // Who wrote what a buffer holds. A part of another buffer is written with it and read with it.
    std::vector<std::set<int>> writers(program.buffers.size());
    const auto whole = [&](int b) {
      for (;;) {
        const auto& alias = program.buffers[static_cast<size_t>(b)].alias;
        if (!alias || alias->replaces) return static_cast<size_t>(b);
        b = alias->base;
      }
    };
    size_t input = 0;
    for (size_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].kind == BufferKind::input && input < p.inputs.size()) {
        const auto& from = made_[p.inputs[input++]];
        writers[b].insert(from.begin(), from.end());
      }
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const Call& call = program.calls[c];
      const Kernel& kernel = program.kernels[static_cast<size_t>(call.kernel)];
      const size_t underscore = kernel.name.find('_');  // k<number>_<op of the first node>
      const int node = add({call.locations.empty() ? kernel.name : call.locations.front(),
                            underscore == std::string::npos ? kernel.name : kernel.name.substr(underscore + 1),
                            p.device, index, static_cast<int>(c)});
      std::vector<size_t> written;
      size_t at = 0;
      for (const KernelTensor& t : kernel.tensors) {
        if (t.role == Role::temp || at == call.buffers.size()) continue;
        const size_t buffer = whole(call.buffers[at++]);
        if (t.role == Role::output)
          written.push_back(buffer);
        else
          for (const int from : writers[buffer]) edges_.emplace(from, node);
      }
      for (const size_t b : written) writers[b].insert(node);
    }
    size_t output = 0;
    for (size_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].kind == BufferKind::output && output < p.outputs.size()) {
        const auto& from = writers[whole(static_cast<int>(b))];
        made_[p.outputs[output++]] = {from.begin(), from.end()};
      }
    return {};
  }

  const CompiledModel& model_;
  CallGraph out_;
  std::map<std::string, std::vector<int>> made_;  // value -> the nodes that make it
  std::set<std::pair<int, int>> edges_;
};

}  // namespace

Result<CallGraph> call_graph(const CompiledModel& model) { return Builder(model).run(); }

}  // namespace dlc::cli
