#include "xsa/base/signals.h"

#include <signal.h>

#include <atomic>

namespace xsa {
namespace {

std::atomic<int> noted_signal{0};
std::atomic<bool> save_requested{false};
// Else not safe in a handler.
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void set_action(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a write in progress goes on
  sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void note_first(int signal) {
  int none = 0;
  noted_signal.compare_exchange_strong(none, signal);
}

void note(int signal) {
  note_first(signal);
  set_action(SIGINT, SIG_DFL);
  set_action(SIGTERM, SIG_DFL);
}

/// What the closed terminal no longer shows must not end what is being saved.
void note_closed_terminal(int signal) {
  note_first(signal);
  set_action(SIGPIPE, SIG_IGN);
}

void note_save_request(int) { save_requested = true; }

}  // namespace

void install_stop_handlers() {
  set_action(SIGINT, note);
  set_action(SIGTERM, note);
  if (!is_ignored(SIGHUP)) set_action(SIGHUP, note_closed_terminal);
  set_action(SIGUSR1, note_save_request);
  set_action(SIGXFSZ, SIG_IGN);  // a write beyond a file size limit is an error like a full disk
}

int stop_signal() { return noted_signal; }

void clear_stop_signal() { noted_signal = 0; }

bool take_save_request() { return save_requested.exchange(false); }

void outlive_closed_output() { set_action(SIGPIPE, SIG_IGN); }

const char* signal_name(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP";
}

}  // namespace xsa
