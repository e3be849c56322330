// Ops that draw random numbers. No two runtimes draw the same ones, so nothing that could be checked would come out.
#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

Result<std::vector<ValueId>> random(const NodeView& n) {
  return n.error("random numbers are not supported", "give the numbers to the model as an input");
}

constexpr OpEntry kTable[] = {
    {"", "Bernoulli", random},        {"", "Multinomial", random},   {"", "RandomNormal", random},
    {"", "RandomNormalLike", random}, {"", "RandomUniform", random}, {"", "RandomUniformLike", random},
};

}  // namespace

std::span<const OpEntry> random_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
