#include "xsa/data/bar.h"

#include <utility>

#include "xsa/base/signals.h"

namespace xsa::data {
namespace {

std::int64_t mebibytes(std::int64_t bytes) { return bytes >> 20; }

}  // namespace

Bar::Bar(std::string label, std::int64_t bytes) : label_(std::move(label)), total_(bytes) {}

double Bar::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Bar::update(std::int64_t bytes, std::string_view details) {
  done_ = bytes;
  if (!bar_ && elapsed_s() > 2) {
    bar_.emplace(label_, total_ > 0 ? mebibytes(total_) : -1, "MiB");
    bar_->start_at(mebibytes(done_));
  }
  if (bar_) bar_->update(mebibytes(done_), details);
}

void Bar::advance(std::int64_t bytes) {
  if (const int signal = stop_signal())
    throw Interrupted(signal, "stopped while " + label_ + "; the cache is as it was");
  update(done_ + bytes, "");
}

}  // namespace xsa::data
