// Errors that reach the user. Each text says who speaks, what was expected, what came and what to
// do. Not for internal invariants: those are tests' work.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace xsa {

/// Something failed (exit code 1): a file, a machine limit, a loss that is not finite.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller asked for something impossible (exit code 2): an unknown key, a value out of range.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Joins its arguments as `operator<<` prints them.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws Error with the joined parts unless `holds`.
template <class... Parts>
void check(bool holds, const Parts&... parts) {
  if (!holds) [[unlikely]]
    throw Error(cat(parts...));
}

/// Throws UsageError with the joined parts unless `holds`.
template <class... Parts>
void check_usage(bool holds, const Parts&... parts) {
  if (!holds) [[unlikely]]
    throw UsageError(cat(parts...));
}

}  // namespace xsa
