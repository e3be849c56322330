#include "tools/dlc/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

namespace dlc::cli {

namespace {

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr int kNotRun = 127;  // as shells say it

using Clock = std::chrono::steady_clock;

// Of the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& argv, int in, int out, int failed) {
  setpgid(0, 0);  // a group of its own, so that all of it can be stopped
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  execvp(argv[0], argv.data());
  const int why = errno;
  [[maybe_unused]] const auto told = write(failed, &why, sizeof why);
  _exit(kNotRun);
}

// What comes through the pipe until it ends or time is up.
bool read_until(int fd, Clock::time_point end, std::string& out) {
  char buffer[1 << 14];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd p{fd, POLLIN, 0};
    const int ready = poll(&p, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0 || (n < 0 && errno != EINTR)) return true;
    if (n > 0) out.append(buffer, std::min(static_cast<size_t>(n), kMostOutput - std::min(out.size(), kMostOutput)));
  }
}

// Whether the child ended before the time was up.
bool wait_until(pid_t child, Clock::time_point end, int& status) {
  for (;;) {
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR)) return true;
    if (Clock::now() >= end) return false;
    usleep(2000);
  }
}

}  // namespace

Result<Ran> run_program(const std::vector<std::string>& arguments, double seconds) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const auto cannot = [&](int why) {
    return fail({arguments[0], 0, 0, {}}, fmt::format("cannot run the program: {}", std::strerror(why)));
  };
  int out[2], failed[2];
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0) return cannot(errno);
  if (pipe2(out, O_CLOEXEC) != 0) return close(nothing), cannot(errno);
  if (pipe2(failed, O_CLOEXEC) != 0) return close(nothing), close(out[0]), close(out[1]), cannot(errno);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const pid_t child = fork();
  if (child == 0) become(argv, nothing, out[1], failed[1]);
  const int why_not = child < 0 ? errno : 0;
  if (child > 0) setpgid(child, child);  // whichever of the two comes first
  for (const int fd : {nothing, out[1], failed[1]}) close(fd);
  Ran ran;
  int status = 0, why = 0;
  if (child > 0) {
    const bool ended = read_until(out[0], end, ran.output) && wait_until(child, end, status);
    kill(-child, SIGKILL);  // what it left behind too
    if (!ended) waitpid(child, &status, 0);
    ran.timed_out = !ended;
    if (read(failed[0], &why, sizeof why) != static_cast<ssize_t>(sizeof why)) why = 0;
  }
  close(out[0]);
  close(failed[0]);
  if (child < 0) return cannot(why_not);
  if (why != 0) return cannot(why);
  ran.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ran.code = ran.signal != 0 ? 128 + ran.signal : WEXITSTATUS(status);
  return ran;
}

}  // namespace dlc::cli
