#include "xsa/generate/utf8_stream.h"

#include <utility>

#include "xsa/text/utf8.h"

namespace xsa::generate {

std::string Utf8Stream::add(std::string_view piece) {
  waiting_ += piece;
  std::string shown;
  std::string_view left = waiting_;
  while (!left.empty()) {
    const text::Character first = text::first_character(left);
    std::size_t size = first.size;
    if (first.value != text::kInvalid) {
      shown += left.substr(0, size);
    } else {
      const text::Broken broken = text::broken_character(left);
      if (broken.may_go_on) break;
      shown += text::kReplacement;
      size = broken.size;
    }
    left.remove_prefix(size);
  }
  waiting_ = std::string(left);
  return shown;
}

std::string Utf8Stream::finish() {
  const bool unfinished = !std::exchange(waiting_, "").empty();
  return unfinished ? std::string(text::kReplacement) : "";
}

}  // namespace xsa::generate
