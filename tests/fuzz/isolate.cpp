#include "tests/fuzz/isolate.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>

namespace dlc::fuzz {

void limit_time(int seconds) {
  itimerval t{};
  t.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &t, nullptr);
  alarm(static_cast<unsigned>(60 * seconds));
}

std::optional<Failure> isolated(const std::function<std::optional<Failure>()>& job, int seconds) {
  std::fflush(nullptr);
  int channel[2];
  if (pipe(channel) != 0) return Failure{"pipe", std::strerror(errno)};
  const pid_t child = fork();
  if (child < 0) return Failure{"fork", std::strerror(errno)};
  if (child == 0) {
    close(channel[0]);
    limit_time(seconds);
    const auto failure = job();
    if (failure) {
      const std::string text = failure->stage + "\n" + failure->message;
      for (size_t at = 0; at < text.size();) {
        const ssize_t n = write(channel[1], text.data() + at, text.size() - at);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
    }
    _exit(failure ? 1 : 0);
  }
  close(channel[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(channel[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM)
      return Failure{"hang", fmt::format("not done after {} s", seconds)};
    return Failure{"crash", fmt::format("died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))};
  }
  if (WEXITSTATUS(status) == 0) return {};
  const size_t line = text.find('\n');
  if (line == std::string::npos) return Failure{"crash", fmt::format("exit status {}", WEXITSTATUS(status))};
  return Failure{text.substr(0, line), text.substr(line + 1)};
}

}  // namespace dlc::fuzz
