// This very program as a child process, so that one training's crash, or its memory, is not
// another's.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace xsa::study {

class Child {
 public:
  /// Starts `xsa WORDS...`, its output into `log` (made anew). It has a process group of its own,
  /// so that a terminal's Ctrl-C comes from the parent alone, and it dies with the parent.
  Child(const std::vector<std::string>& words, const std::filesystem::path& log);
  /// Kills and awaits it, if it still runs.
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  void send(int signal) const;
  /// Its exit code, or 128 + the signal that ended it; nothing while it runs.
  std::optional<int> poll();
  /// The error that it ended with; "" where it said none.
  std::string error() const;

 private:
  pid_t pid_ = -1;
  std::filesystem::path log_;
  std::optional<int> exit_code_;
};

}  // namespace xsa::study
