// A bar over bytes that stays away from short work, and notices when to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "xsa/base/progress.h"

namespace xsa::data {

class Bar {
 public:
  /// `bytes`: all there is to do, 0 if nobody knows, of which an earlier process has `done`.
  Bar(std::string label, std::int64_t bytes, std::int64_t done = 0);
  /// Shows itself once two seconds have passed.
  void update(std::int64_t bytes, std::string_view details);
  /// So many bytes more. Throws Interrupted, "stopped while <label>; the cache is as it was", when
  /// asked to stop.
  void advance(std::int64_t bytes);
  std::int64_t done() const { return done_; }
  double elapsed_s() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::int64_t done_;
  Clock::time_point start_ = Clock::now();
  Progress bar_;
};

}  // namespace xsa::data
