#include "tools/dlc/interrupt.h"

#include <atomic>

namespace dlc::cli {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> came{0};
std::atomic<pid_t> running{0};

void on_signal(int signal) {
  came = signal;
  for (const int s : kSignals) std::signal(s, SIG_DFL);
  if (const pid_t process = running.load(); process != 0) kill(process, SIGKILL);
}

}  // namespace

Interruptible::Interruptible() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_DFL) continue;  // ignored (nohup), or there is one already
    struct sigaction action{};
    action.sa_handler = on_signal;
    for (const int s : kSignals) sigaddset(&action.sa_mask, s);
    sigaction(kSignals[i], &action, nullptr);
  }
}

Interruptible::~Interruptible() {
  if (interrupted() != 0) return;  // the next one ends the process
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int interrupted() { return came.load(); }

StoppedBySignal::StoppedBySignal(pid_t process) {
  running = process;
  if (interrupted() != 0) kill(process, SIGKILL);  // it came before the process was known
}

StoppedBySignal::~StoppedBySignal() { running = 0; }

}  // namespace dlc::cli
