#include "xsa/base/signals.h"

#include <signal.h>

#include <atomic>

namespace xsa {
namespace {

std::atomic<int> noted_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // else not safe in a handler

void set_action(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a write in progress goes on
  sigaction(signal, &action, nullptr);
}

void note(int signal) {
  noted_signal = signal;
  set_action(SIGINT, SIG_DFL);
  set_action(SIGTERM, SIG_DFL);
}

}  // namespace

void install_stop_handlers() {
  set_action(SIGINT, note);
  set_action(SIGTERM, note);
  set_action(SIGXFSZ, SIG_IGN);  // a write beyond a file size limit is an error like a full disk
}

int stop_signal() { return noted_signal; }

void clear_stop_signal() { noted_signal = 0; }

}  // namespace xsa
