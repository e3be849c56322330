// Words as a shell reads them: what dlc prints as a command can be pasted.
//
//   shell_word("a.onnx")               a.onnx
//   shell_word("commit(asic)")         'commit(asic)'
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dlc::cli {

std::string shell_word(std::string_view word);
std::string shell_command(std::span<const std::string> words);

}  // namespace dlc::cli
