// What the tests of a suite are made of: which op of ONNX became which records, on elements of which type.
//
// A file beside the list of results (tools/dlc/conform.h), one test a line, written by `dlc conform --write-uses`:
//
//   test_abs Abs=abs:f32
//   test_clip_expanded Less=less:f32 Where=where:f32
//   test_strnorm_model_nostopwords StringNormalizer=
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dlc/graph/graph.h"
#include "frontends/onnx/onnx.h"

namespace dlc::cli {

struct OpUse {
  std::string op;                    // as OnnxNode::op
  std::vector<std::string> records;  // sorted; empty: it could not be imported, or nothing was left to compute
  std::string type;                  // of its first tensor
  friend auto operator<=>(const OpUse&, const OpUse&) = default;
};
using OpUses = std::map<std::string, std::vector<OpUse>>;  // by test

// Each use once, sorted. Of the graph as it was imported.
std::vector<OpUse> uses_of(const Graph& g, const std::vector<OnnxNode>& nodes);

std::string print_uses(const OpUses& uses);
Result<OpUses> read_uses(const std::string& file);

}  // namespace dlc::cli
