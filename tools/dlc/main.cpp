// dlc: the one program. `dlc --hw=native model.onnx -o model.dlca` compiles; the other verbs are its subcommands.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>

#include "tools/dlc/addresses.h"
#include "tools/dlc/cli.h"
#include "tools/dlc/conform.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/interrupt.h"
#include "tools/dlc/quantize.h"
#include "tools/dlc/vectors.h"

namespace {

using namespace dlc;

// The first word that names a command goes to the front; without one the command is `compile`.
std::vector<std::string> with_verb(int argc, char** argv, const std::vector<std::string>& commands) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const auto word = std::ranges::find_if(args, [](const std::string& a) { return !a.starts_with("-"); });
  if (word != args.end() && std::ranges::count(commands, *word) > 0) {
    std::rotate(args.begin(), word, word + 1);
  } else {
    const bool asks = args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "--version";
    if (!asks) args.insert(args.begin(), "compile");
  }
  return args;
}

// What is wrong with the command line, and where it is explained.
Error usage_error(const CLI::App& app, const CLI::ParseError& e, const std::vector<std::string>& args,
                  const std::vector<std::string>& commands) {
  const std::string& first = args.front();
  std::string command = "dlc";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  if (const auto verbs = at->get_subcommands({}); at != &app && !verbs.empty() && !at->remaining().empty()) {
    std::vector<std::string> names;
    for (const CLI::App* verb : verbs) names.push_back(verb->get_name());
    const std::string word = at->remaining().front(), near = nearest(word, names);
    return Error({}, fmt::format("{} has no command '{}'", command, word),
                 near.empty() ? command + " --help" : fmt::format("did you mean {} {}?", command, near));
  }
  if (const auto late = std::ranges::find_first_of(args, commands); late != args.end() && late != args.begin())
    return Error({}, e.what(),
                 fmt::format("the command comes first: dlc {0} ..., then its options ({0} --help)", *late));
  std::error_code ec;
  const std::string near = first.find('.') == std::string::npos ? nearest(first, commands) : "";
  const bool is_misspelt = !near.empty() && near != first && !std::filesystem::exists(first, ec);
  return Error({}, e.what(), is_misspelt ? fmt::format("did you mean dlc {}?", near) : command + " --help");
}

// Where a signal stopped the command, which has cleaned up, the process ends by it as it would have.
void end_if_interrupted() {
  if (const int signal = cli::interrupted(); signal != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

// The exit code, once what was printed has arrived.
int printed(int code, bool json = false) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  cli::report(Error({}, fmt::format("cannot print: {}", std::strerror(errno))), json);
  return cli::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of the write, not the end of the process
  cli::Context cx;
  CLI::App app("dlc: compiles deep-learning models, runs them, and says what it did", "dlc");
  app.set_version_flag("--version", DLC_VERSION);
  app.require_subcommand(1);
  app.footer("Without a command: compile.  dlc --hw=native model.onnx -o model.dlca\ndocs/cli.md has every option.");
  for (const auto add : {cli::add_compile, cli::add_run, cli::add_bench, cli::add_compare, cli::add_bisect,
                         cli::add_reduce, cli::add_explain, cli::add_replay, cli::add_cosim, cli::add_report,
                         cli::add_export_vectors, cli::add_addr2op, cli::add_hw, cli::add_targets, cli::add_plugins,
                         cli::add_opt, cli::add_ops, cli::add_conform, cli::add_quantize})
    add(app, cx);
  std::vector<std::string> commands;
  for (const CLI::App* sub : app.get_subcommands({})) commands.push_back(sub->get_name());
  if (argc == 1) {
    std::fputs(app.help().c_str(), stderr);
    return cli::kUsage;
  }
  const std::vector<std::string> arguments = with_verb(argc, argv, commands);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // as CLI11 wants them
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return printed(app.exit(e));  // --help, --version
    const bool json = std::any_of(argv, argv + argc, [](const char* a) { return std::strcmp(a, "--json") == 0; });
    cli::report(usage_error(app, e, {argv + 1, argv + argc}, commands), json);
    return cli::kUsage;
  }
  cli::crash::arm(app, cx.json);
  Error error;
  try {
    const Result<int> done = cx.action();
    if (done) {
      const int code = printed(*done, cx.json);
      end_if_interrupted();
      return code;
    }
    error = done.error();
  } catch (const std::exception& e) {
    error = Error({}, fmt::format("internal error: {}", e.what()), "please report it with the command line");
  }
  cli::report(error, cx.json);
  end_if_interrupted();
  if (!error.message().starts_with("internal error")) return cli::kFailed;
  cli::crash::internal_error(error.message());
  return cli::kInternal;
}
