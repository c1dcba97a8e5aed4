// Signals that ask a run to save. Ctrl-C, SIGTERM and SIGHUP (a terminal that closes) also ask it
// to stop; SIGUSR1 (a cluster's warning that time runs out) lets it go on.
#pragma once

#include "xsa/base/error.h"

namespace xsa {

/// The work stopped because it was asked to, with its state saved; exit code 130 (SIGINT), 143
/// (SIGTERM) or 129 (SIGHUP).
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& text) : Error(text), signal_(signal) {}
  int exit_code() const { return 128 + signal_; }

 private:
  int signal_;
};

/// From here on SIGINT, SIGTERM, SIGHUP and SIGUSR1 are noted. A SIGINT or SIGTERM after another
/// gets the system's default action. SIGHUP never ends the process by itself: shell and kernel both
/// send one as a terminal closes, often beside a SIGTERM. Where it was ignored (nohup), it stays
/// so.
void install_stop_handlers();
/// The first signal that asked to stop, or 0.
int stop_signal();
/// For tests: forget a noted signal.
void clear_stop_signal();

/// Whether SIGUSR1 came since this was last asked.
bool take_save_request();

/// From here on output that nobody reads any more (a closed terminal, a pipe whose reader ended) is
/// lost and does not end the process: what it works on is worth more.
void outlive_closed_output();

/// "SIGINT", "SIGTERM", "SIGHUP".
const char* signal_name(int signal);

}  // namespace xsa
