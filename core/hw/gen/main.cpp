// dlc-hw-gen: writes what is derived from a description, for builds that need it before `dlc` exists (the RTL).
//   dlc-hw-gen DESCRIPTION[,R=8...] sv|c|cpp|manual [OUTPUT]
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "dlc/hw/emit.h"
#include "dlc/hw/load.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    fmt::print(stderr, "usage: dlc-hw-gen DESCRIPTION[,PARAM=VALUE...] sv|c|cpp|manual [OUTPUT]\n");
    return 2;
  }
  const auto hw = dlc::load_hw(argv[1]);
  if (!hw) {
    fmt::print(stderr, "{}\n", dlc::to_string(hw.error()));
    return 1;
  }
  const std::string what = argv[2];
  std::string text;
  if (what == "sv")
    text = dlc::emit_systemverilog(*hw);
  else if (what == "c")
    text = dlc::emit_c_header(*hw);
  else if (what == "cpp")
    text = dlc::emit_cpp_header(*hw);
  else if (what == "manual")
    text = dlc::emit_manual(*hw);
  else
    return fmt::print(stderr, "'{}' is not one of sv, c, cpp, manual\n", what), 2;
  if (argc == 3) {
    std::cout << text;
    return 0;
  }
  std::ofstream out(argv[3]);
  if (!(out << text).flush()) {
    fmt::print(stderr, "{}: cannot write\n", argv[3]);
    return 1;
  }
  return 0;
}
