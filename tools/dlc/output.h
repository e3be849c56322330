// Output files: asked for before the work, written whole or not at all.
#pragma once

#include <string>
#include <vector>

#include "dlc/graph/graph.h"
#include "dlc/io/numpy.h"

namespace dlc::cli {

// Before long work: `output` can be written and is none of the inputs, which are files or NAME=FILE.
Result<> check_output(const std::string& output, const std::vector<std::string>& inputs);

// So for all that a command writes, files and folders ("": not asked for): none is another one, or in one of the
// folders.
Result<> check_outputs(const std::vector<std::string>& files, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& folders = {});

// The file of constants that belongs to a text: m.dlct has m.weights.npz beside it.
std::string weights_beside(const std::string& text_file);
// The constants that graph text leaves out.
NamedTensors outlined_constants(const Graph& g);
// The tensors that a reduced text is run with: m.inputs.npz.
std::string inputs_beside(const std::string& text_file);
// The text, and its constants beside it if there are any; returns the constants' file, or "". So with the inputs, where
// they are given. Where there are none, those that an earlier text of this name had are removed.
Result<std::string> write_text(const std::string& file, const std::string& text, const NamedTensors& constants,
                               const NamedTensors* inputs = nullptr);
// A folder that is made when something is written in it: whether it can be.
Result<> check_folder(const std::string& folder);

}  // namespace dlc::cli
