#include "xsa/base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace xsa {
namespace {

/// Runs `body` in a child process and returns its wait status.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Signals, TheFirstIsNotedAndTheWorkGoesOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const int status = status_of_child([signal] {
      install_stop_handlers();
      if (stop_signal() != 0) ::_exit(1);
      ::raise(signal);
      ::_exit(stop_signal() == signal ? 0 : 2);
    });
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST(Signals, TheSecondEndsTheProcess) {
  const int status = status_of_child([] {
    install_stop_handlers();
    ::raise(SIGTERM);
    ::raise(SIGINT);  // another one than the first
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST(Signals, CanBeForgottenAndNotedAnew) {
  const int status = status_of_child([] {
    for (int i = 0; i < 3; ++i) {
      install_stop_handlers();
      ::raise(SIGINT);
      if (stop_signal() != SIGINT) ::_exit(1);
      clear_stop_signal();
      if (stop_signal() != 0) ::_exit(2);
    }
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Signals, InterruptedCarriesTheShellsExitCode) {
  EXPECT_EQ(Interrupted(SIGINT, "stopped").exit_code(), 130);
  EXPECT_EQ(Interrupted(SIGTERM, "stopped").exit_code(), 143);
}

}  // namespace
}  // namespace xsa
