// A bar over bytes that stays away from short work, and notices when to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "xsa/base/progress.h"

namespace xsa::data {

class Bar {
 public:
  /// `bytes`: all there is to do; 0 if nobody knows.
  Bar(std::string label, std::int64_t bytes);
  /// Shows itself once two seconds have passed; what was done then does not count for the time
  /// left.
  void update(std::int64_t bytes, std::string_view details);
  /// So many bytes more. Throws Interrupted, "stopped while <label>; the cache is as it was", when
  /// asked to stop.
  void advance(std::int64_t bytes);
  std::int64_t done() const { return done_; }
  double elapsed_s() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::int64_t total_, done_ = 0;
  Clock::time_point start_ = Clock::now();
  std::optional<Progress> bar_;
};

}  // namespace xsa::data
