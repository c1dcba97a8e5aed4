#include "xsa/data/bar.h"

#include <utility>

#include "xsa/base/signals.h"

namespace xsa::data {
namespace {

std::int64_t mebibytes(std::int64_t bytes) { return bytes >> 20; }

}  // namespace

Bar::Bar(std::string label, std::int64_t bytes, std::int64_t done)
    : label_(std::move(label)),
      done_(done),
      bar_(label_, bytes > 0 ? mebibytes(bytes) : -1, "MiB") {
  bar_.start_at(mebibytes(done));
  bar_.show_after(std::chrono::seconds(2));
}

double Bar::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Bar::update(std::int64_t bytes, std::string_view details) {
  done_ = bytes;
  bar_.update(mebibytes(done_), details);
}

void Bar::advance(std::int64_t bytes) {
  if (const int signal = stop_signal())
    throw Interrupted(signal, "stopped while " + label_ + "; the cache is as it was");
  update(done_ + bytes, "");
}

}  // namespace xsa::data
