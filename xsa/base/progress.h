// Progress for a person: one bar on a terminal, a plain line now and then elsewhere (logs, CI).
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace xsa {

class Progress {
 public:
  /// `total` in `unit` (e.g. "step"); -1 where nobody knows it. Writes to `out`; nothing is drawn
  /// before the first update.
  Progress(std::string label, std::int64_t total, std::string unit, std::FILE* out = stderr);
  ~Progress();  // as finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Work up to `done` existed before this process (a resumed run): it does not count for the time
  /// left.
  void start_at(std::int64_t done);
  /// Work that takes less is not shown; the time of what takes more counts from its begin.
  void show_after(std::chrono::nanoseconds delay) { delay_ = delay; }
  /// Redraws at most ten times a second on a terminal; elsewhere a line at most every ten seconds,
  /// and at the end. `details`: e.g. "loss 2.135  val 2.150  21.3k tokens/s".
  void update(std::int64_t done, std::string_view details);
  /// Prints a whole line above the bar.
  void print_line(std::string_view text);
  /// Leaves the last state on the screen and ends the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);
  void draw_open(double elapsed_s, bool last);

  std::string label_, unit_, details_;
  std::int64_t total_, done_ = 0, first_ = 0;
  std::FILE* out_;
  bool terminal_, updated_ = false, finished_ = false;
  Clock::time_point start_, last_draw_;
  std::chrono::nanoseconds delay_{0};
};

/// "3.142", "-0.500", "nan".
std::string fixed(double value, int decimals);
/// "950", "21.3k", "4.56M", "1.20G".
std::string short_count(double value);
/// "0:42", "12:05", "3:07:11".
std::string short_time(double seconds);
/// "512 B", "48.0 MiB", "1.50 GiB".
std::string short_bytes(double bytes);

}  // namespace xsa
