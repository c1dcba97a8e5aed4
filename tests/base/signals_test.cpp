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

// A closing terminal sends it from shell and kernel at once, a logout a SIGTERM beside it.
TEST(Signals, AClosedTerminalIsNotedHoweverOftenItIsTold) {
  const int status = status_of_child([] {
    ::signal(SIGHUP, SIG_DFL);  // nohup may have started the tests
    install_stop_handlers();
    for (const int signal : {SIGHUP, SIGHUP, SIGTERM, SIGHUP}) ::raise(signal);
    ::_exit(stop_signal() == SIGHUP ? 0 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Signals, WhatNohupIgnoresStaysIgnored) {
  const int status = status_of_child([] {
    ::signal(SIGHUP, SIG_IGN);
    install_stop_handlers();
    ::raise(SIGHUP);
    ::_exit(stop_signal());
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Signals, ARequestToSaveStopsNothingAndIsTakenOnce) {
  const int status = status_of_child([] {
    install_stop_handlers();
    if (take_save_request()) ::_exit(1);
    ::raise(SIGUSR1);
    if (stop_signal() != 0 || !take_save_request() || take_save_request()) ::_exit(2);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Signals, OutputThatNobodyReadsEndsNothingOnceThatIsSaid) {
  const auto write_into_the_void = [] {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(1);
    ::close(ends[0]);
    if (::write(ends[1], "x", 1) != -1) ::_exit(2);
  };
  EXPECT_TRUE(WIFSIGNALED(status_of_child(write_into_the_void)));
  const int status = status_of_child([&] {
    outlive_closed_output();
    write_into_the_void();
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Signals, InterruptedCarriesTheShellsExitCode) {
  EXPECT_EQ(Interrupted(SIGINT, "stopped").exit_code(), 130);
  EXPECT_EQ(Interrupted(SIGTERM, "stopped").exit_code(), 143);
  EXPECT_EQ(Interrupted(SIGHUP, "stopped").exit_code(), 129);
}

}  // namespace
}  // namespace xsa
