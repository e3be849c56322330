// Names of a model that are text: what is not UTF-8, and control characters, are written out.
//
//   "conv\xff1" (a byte 255)   ->   "conv\\xff1" (four characters)
//
// Different names stay different: a backslash that could be read as such an escape is escaped itself.
#pragma once

#include <onnx/onnx.pb.h>

#include <string>

namespace dlc::onnx_frontend {

std::string clean_name(const std::string& name);
// Every name in the model, its functions and its bodies. A dim whose name holds no letter has none: two dims called "?"
// are not of one size.
void clean_names(onnx::ModelProto& model);
// Nodes of one name get numbers: "conv", "conv_2". A node without a name is called by its first result.
void tell_nodes_apart(onnx::ModelProto& model);

}  // namespace dlc::onnx_frontend
