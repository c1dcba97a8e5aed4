#include "xsa/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "xsa/base/error.h"

namespace xsa {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kTerminalInterval = 100ms, kPlainInterval = 10s;
constexpr std::int64_t kMinBar = 8, kMaxBar = 40;
constexpr double kCountsInFull = 100'000;  // longer ones are shortened: 4.56M
constexpr char kClearLine[] = "\r\x1b[K";

bool is_terminal(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(out)) != 0 && std::string_view(term == nullptr ? "" : term) != "dumb";
}

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

std::int64_t terminal_columns(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// Columns of UTF-8 text on a terminal, one a character.
std::int64_t columns(std::string_view text) {
  return std::count_if(text.begin(), text.end(), starts_character);
}

/// At most `width` columns; what was cut shows as an ellipsis.
std::string fit(std::string_view text, std::int64_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width <= 0) return "";
  std::size_t end = 0;
  for (std::int64_t column = 0; column < width; ++end)
    if (starts_character(text[end])) ++column;
  return std::string(text.substr(0, end - 1)) + "…";
}

/// A bar of `width` columns, filled to an eighth of a column.
std::string bar(double fraction, std::int64_t width) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::int64_t>(fraction * static_cast<double>(width) * 8);
  std::string filled;
  for (std::int64_t i = 0; i < eighths / 8; ++i) filled += "█";
  filled += kEighths[eighths % 8];
  const std::string empty(static_cast<std::size_t>(width - columns(filled)), ' ');
  return cat("▕", wants_color() ? cat("\x1b[32m", filled, "\x1b[0m") : filled, empty, "▏");
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string three_digits(double value) {
  const double size = std::abs(value);
  return format(size < 9.995 ? "%.2f" : size < 99.95 ? "%.1f" : "%.0f", value);
}

std::string count(std::int64_t value, std::int64_t total) {
  const auto number = static_cast<double>(value);
  return static_cast<double>(total) < kCountsInFull ? cat(value) : short_count(number);
}

}  // namespace

Progress::Progress(std::string label, std::int64_t total, std::string unit, std::FILE* out)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      out_(out),
      terminal_(is_terminal(out)),
      start_(Clock::now()) {}

Progress::~Progress() { finish(); }

void Progress::start_at(std::int64_t done) {
  first_ = done_ = done;
  start_ = Clock::now();
}

void Progress::update(std::int64_t done, std::string_view details) {
  done_ = done;
  details_ = details;
  const Clock::time_point now = Clock::now();
  if (!updated_) {
    if (now - start_ < delay_) return;
    updated_ = true;
    last_draw_ = start_;
    if (terminal_) draw(/*last=*/false);
  }
  if (now - last_draw_ >= (terminal_ ? kTerminalInterval : kPlainInterval)) draw(/*last=*/false);
}

void Progress::print_line(std::string_view text) {
  const bool over_bar = terminal_ && updated_ && !finished_;
  const std::string line = cat(over_bar ? kClearLine : "", text, "\n");
  std::fwrite(line.data(), 1, line.size(), out_);
  if (over_bar) draw(/*last=*/false);
  std::fflush(out_);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (updated_) draw(/*last=*/true);
}

/// Without a total there is no bar and no time left.
void Progress::draw_open(double elapsed_s, bool last) {
  std::string line =
      cat(label_, terminal_ ? " " : ": ", unit_, " ", short_count(static_cast<double>(done_)), "  ",
          details_, details_.empty() ? "" : "  ", short_time(elapsed_s));
  if (terminal_) line = kClearLine + fit(line, terminal_columns(out_) - 1);
  if (last || !terminal_) line += "\n";
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

void Progress::draw(bool last) {
  last_draw_ = Clock::now();
  const double elapsed_s = std::chrono::duration<double>(last_draw_ - start_).count();
  const double fraction =
      total_ > 0 ? std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0)
                 : 1.0;
  const std::int64_t fresh = done_ - first_;
  const double left_s = fresh > 0
                            ? elapsed_s / static_cast<double>(fresh) *
                                  static_cast<double>(std::max(total_ - done_, std::int64_t{0}))
                            : NAN;
  if (total_ < 0) return draw_open(elapsed_s, last);
  const std::string percent = format("%3.0f%%", std::floor(fraction * 100));
  const std::string counts = cat(unit_, " ", count(done_, total_), "/", count(total_, total_));
  const std::string times = last && done_ >= total_
                                ? short_time(elapsed_s)
                                : cat(short_time(elapsed_s), ", ", short_time(left_s), " left");
  std::string line;
  if (terminal_) {
    const std::int64_t width = terminal_columns(out_) - 1;  // a full last column may wrap
    const std::string before = cat(label_, " "), after = cat(" ", percent, "  ", counts, "  ");
    const std::int64_t fixed = columns(before) + 2 + columns(after) + columns(times);
    const std::int64_t details_room = width - fixed - kMinBar - 2;
    const std::string details = details_.empty() ? "" : fit(details_, details_room);
    const std::string tail = cat(after, details, details.empty() ? "" : "  ", times);
    const std::int64_t bar_room = width - columns(before) - 2 - columns(tail);
    line = kClearLine + (bar_room >= kMinBar
                             ? cat(before, bar(fraction, std::min(bar_room, kMaxBar)), tail)
                             : fit(cat(label_, after, times), width));
    if (last) line += "\n";
  } else {
    line = cat(label_, ": ", percent, "  ", counts, "  ", details_, details_.empty() ? "" : "  ",
               times, "\n");
  }
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

std::string fixed(double value, int decimals) {
  char text[400];  // of 1.8e308
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string short_count(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? format("%.3g", value) : three_digits(value) + kUnits[unit];
}

std::string short_time(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "-:--";
  const auto whole = static_cast<std::int64_t>(seconds);
  const int hours = static_cast<int>(whole / 3600), minutes = static_cast<int>(whole / 60 % 60),
            rest = static_cast<int>(whole % 60);
  char text[32];
  if (hours > 0)
    std::snprintf(text, sizeof text, "%d:%02d:%02d", hours, minutes, rest);
  else
    std::snprintf(text, sizeof text, "%d:%02d", minutes, rest);
  return text;
}

std::string short_bytes(double bytes) {
  constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1023.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return (unit == 0 ? format("%.0f", bytes) : three_digits(bytes)) + kUnits[unit];
}

}  // namespace xsa
