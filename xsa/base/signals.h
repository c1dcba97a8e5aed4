// Ctrl-C and SIGTERM ask a run to save and stop; a second one ends the process at once.
#pragma once

#include "xsa/base/error.h"

namespace xsa {

/// The work stopped because it was asked to, with its state saved; exit code 130 (SIGINT) or 143
/// (SIGTERM).
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& text) : Error(text), signal_(signal) {}
  int exit_code() const { return 128 + signal_; }

 private:
  int signal_;
};

/// From here on SIGINT and SIGTERM are noted; the second one gets the system's default action.
void install_stop_handlers();
/// The signal that asked to stop, or 0.
int stop_signal();
/// For tests: forget a noted signal.
void clear_stop_signal();

}  // namespace xsa
