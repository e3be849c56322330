#include "tools/dlc/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "tools/dlc/interrupt.h"

namespace dlc::cli {

namespace {

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr int kNotRun = 127;  // as shells say it

using Clock = std::chrono::steady_clock;

// Of the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& argv, int in, int out, int failed) {
  setpgid(0, 0);                     // a group of its own, so that all of it can be stopped
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // if dlc is killed, nobody else stops it
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  execvp(argv[0], argv.data());
  const int why = errno;
  [[maybe_unused]] const auto told = write(failed, &why, sizeof why);
  _exit(kNotRun);
}

// What has come through the pipe; false: all of it.
bool read_some(int fd, std::string& out) {
  char buffer[1 << 14];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    out.append(buffer, std::min(static_cast<size_t>(n), kMostOutput - std::min(out.size(), kMostOutput)));
  }
}

// Not reaped: as long as it is not, its group is no other one's.
bool has_ended(pid_t child) {
  siginfo_t about{};
  return waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid == child;
}

// Until the child ends, whoever else holds the pipe. False: the time was up.
bool wait_for(pid_t child, int pipe, Clock::time_point end, std::string& out) {
  constexpr int kSlice = 10;  // ms between two looks at the child
  for (bool open = true;;) {
    pollfd p{open ? pipe : -1, POLLIN, 0};
    (void)poll(&p, 1, kSlice);
    const bool ended = has_ended(child);  // before the last read: nothing of it is missed
    if (open) open = read_some(pipe, out);
    if (ended) return true;
    if (Clock::now() >= end) return false;
  }
}

}  // namespace

Result<Ran> run_program(const std::vector<std::string>& arguments, double seconds) {
  const Interruptible guard;
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const auto cannot = [&](int why) {
    return fail({arguments[0], 0, 0, {}}, fmt::format("cannot run the program: {}", std::strerror(why)));
  };
  const auto stopped_by_signal = [&] {
    return fail({arguments[0], 0, 0, {}}, fmt::format("stopped by signal {}", interrupted()));
  };
  if (interrupted() != 0) return stopped_by_signal();
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
    const StoppedBySignal stopped(-child);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    ran.timed_out = !wait_for(child, out[0], end, ran.output);
    kill(-child, SIGKILL);  // what it left behind too
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (read(failed[0], &why, sizeof why) != static_cast<ssize_t>(sizeof why)) why = 0;
  }
  close(out[0]);
  close(failed[0]);
  if (child < 0) return cannot(why_not);
  if (interrupted() != 0) return stopped_by_signal();
  if (why != 0) return cannot(why);
  ran.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ran.code = ran.signal != 0 ? 128 + ran.signal : WEXITSTATUS(status);
  return ran;
}

}  // namespace dlc::cli
