// The command line: which command, and what it was given.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "xsa/cli/command.h"

namespace xsa::cli {

/// What to do after reading the command line.
struct Invocation {
  std::function<void(const Arguments&)>
      command;  // empty: only print `text` and leave with `exit_code`
  Arguments arguments;
  std::string text;
  int exit_code = 0;
};

/// Throws UsageError for an unknown command, flag or setting (with the nearest match) or a missing
/// value.
Invocation parse(const std::vector<std::string>& words);

}  // namespace xsa::cli
