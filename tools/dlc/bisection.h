// The first step of compiling after which the answer is another one.
//
//   Bisection b(options, cx);
//   DLC_TRY(const Guilty g, b.run());            // g.stage is empty if every step gives the same
//
// Every graph from the import to the last pass runs through the interpreter; when none of them is to blame, what was
// compiled is run piece by piece: the program of each partition, what the plugin made of it, and the device; those in
// bodies of control flow whenever they run. The passes are tried in order and not by halves: one may hide what another
// one did, and the first is asked for.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/dlc/build.h"
#include "tools/dlc/values.h"

namespace dlc::cli {

struct BisectOptions {
  ModelOptions model;
  std::string device, against = kInterpreter;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  double tolerance = kTolerance;
};

struct Guilty {
  std::string stage;       // import, pass, lower, plugin, device; empty: none
  std::string name;        // of the pass or the plugin
  std::string step;        // as it is listed: of passes that run several times, which time it was
  int64_t partition = -1;  // of the stages behind the passes; inside control flow the one that it is
  std::string layers;      // of a partition in a body: the model's nodes in it
  std::string value;       // the output, or the value between partitions, that differs
  Difference difference;   // or
  std::string failure;     // what could not be done any more
  std::optional<Graph> before, after;
};

// commit_numerics states the machine's rounding, so it may change the answer; what comes behind it may not.
struct Committed {
  std::string value;
  Difference difference;
};

class Bisection {
 public:
  Bisection(const BisectOptions& o, Context& cx) : o_(o), cx_(cx) {}

  Result<Guilty> run();
  const Json& steps() const { return steps_; }
  const std::optional<Committed>& committed() const { return committed_; }

 private:
  using Values = std::map<std::string, Tensor, std::less<>>;
  // A partition as a model of its own, with one of its programs on one device.
  struct Alone {
    CompiledModel model;
    std::optional<Session> session;
  };

  Result<> check_devices();
  Result<Source> read() const;
  Result<Values> interpreted(const Graph& g) const;
  Result<> reference(const Graph& g);
  bool same(const Values& want, const Values& got, Guilty& g) const;
  void tell(const std::string& name, bool match);
  bool still(const Graph& g, const std::string& stage, const std::string& name, const std::string& step,
             Guilty& guilty);
  Result<> apply(const std::string& pass, Graph& g) const;
  Result<Guilty> passes(Graph& g);

  Result<Guilty> partitions(const Graph& g);
  Result<std::vector<Tensor>> run_graph_of(const CompiledGraph& g, std::span<const Tensor> inputs, const Values* right,
                                           Guilty& guilty);
  Result<Values> partition(const CompiledPartition& part, const Values& known, const Values* right, Guilty& guilty);
  Result<Values> control(const CompiledPartition& part, const Values& known, const Values* right, Guilty& guilty);
  Result<Values> alone(const CompiledPartition& part, const std::string& stage, const CompiledPartition& as,
                       const std::string& device, const Values& known);
  bool stays(const Result<Values>& got, const Values& want, const std::string& stage, const std::string& name,
             const CompiledPartition& part, Guilty& guilty);

  const BisectOptions& o_;
  Context& cx_;
  Hardware hardware_;
  std::vector<Tensor> inputs_;
  NamedTensors named_;  // the same
  Values want_;         // outputs of the model
  std::optional<Committed> committed_;
  Json steps_ = Json::array();

  const CompiledModel* compiled_ = nullptr;
  size_t top_ = 0;                      // the partition of the model that runs
  bool body_ = false;                   // whether it is inside of one
  std::map<std::string, size_t> told_;  // steps of bodies, which may run many times
  std::map<std::pair<const CompiledPartition*, std::string>, Alone> alone_;
};

}  // namespace dlc::cli
