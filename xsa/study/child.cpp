#include "xsa/study/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa::study {
namespace {

/// Between fork and exec: system calls alone.
[[noreturn]] void become(char* const* words, int output, pid_t parent) {
  ::setpgid(0, 0);
  ::signal(SIGUSR1, SIG_IGN);  // until the program notes it: its default action ends a process
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // what it saved is whole at any moment
  if (::getppid() != parent) ::_exit(128 + SIGKILL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv("/proc/self/exe", words);  // the same program, also if its file was replaced meanwhile
  constexpr char kText[] = "xsa: cannot start itself\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(127);
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const std::filesystem::path& log) : log_(log) {
  std::error_code ignored;  // opening says what is wrong
  std::filesystem::create_directories(log.parent_path(), ignored);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  check(output >= 0, log.string(), ": cannot write: ", std::strerror(errno));
  std::string program = "xsa";
  std::vector<char*> pointers = {program.data()};
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(pointers.data(), output, parent);
  const int reason = errno;
  ::close(output);
  check(pid_ > 0, "cannot start another process: ", std::strerror(reason));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      log_(std::move(other.log_)),
      exit_code_(other.exit_code_) {}

Child::~Child() {
  if (pid_ <= 0 || exit_code_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::send(int signal) const {
  if (!exit_code_) ::kill(pid_, signal);
}

std::optional<int> Child::poll() {
  int status = 0;
  if (exit_code_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return exit_code_;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

std::string Child::error() const {
  const std::string text = read_file(log_);
  std::string error;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("xsa: "))
      error = line.starts_with("xsa: warning: ") ? "" : line.substr(5);
    else if (!line.empty() && !error.empty())
      error += " " + line;  // an error's further lines belong to it
    begin = end + 1;
  }
  return error;
}

}  // namespace xsa::study
