// What `dlc compare` finds: layer by layer, what one side computed beside the other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/dlc/model.h"
#include "tools/dlc/values.h"

namespace dlc::cli {

struct Comparison {
  std::string device, against;     // the URIs, as they were opened
  Json layers = Json::array();     // docs/cli.md has the keys
  std::string first, first_value;  // the first layer that differs, and its first element that does

  void add(const std::string& layer, const std::string& kernel, const Difference& d);
};

// Every kernel call on the device beside the interpreter, on the inputs that the device itself computed: a difference
// is where the fault is, not where its consequences show.
Result<Comparison> compare_calls(const Built& b, const std::string& device, std::span<const Tensor> inputs,
                                 double tolerance, Context& cx);

// Makes outputs of the values between the model's nodes, and says whose they are. `integers_only`: a machine that
// computes in integers would compute another model if its floats were wanted too.
struct Watched {
  std::string node, value;  // the model's names
  DType type;
};
std::vector<Watched> watch(Source& s, bool integers_only);

// Those values on one device beside another one, or beside onnxruntime; each has its own, so a difference goes on.
Result<Comparison> compare_values(const Built& b, const std::vector<Watched>& watched, const std::string& file,
                                  const std::string& device, const std::string& against, std::span<const Tensor> inputs,
                                  double tolerance, Context& cx);

}  // namespace dlc::cli
