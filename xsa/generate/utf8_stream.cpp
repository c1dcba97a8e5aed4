#include "xsa/generate/utf8_stream.h"

#include <algorithm>
#include <utility>

#include "xsa/text/utf8.h"

namespace xsa::generate {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Whether bytes could still come that make `text` the beginning of one character.
bool is_unfinished(std::string_view text) {
  for (const char* rest :
       {"\x80", "\xBF", "\x80\x80", "\xBF\x80", "\x80\x80\x80", "\xBF\x80\x80"}) {
    const std::string whole = std::string(text) + rest;
    const text::Character first = text::first_character(whole);
    if (first.value != text::kInvalid && first.size == whole.size()) return true;
  }
  return false;
}

}  // namespace

std::string Utf8Stream::add(std::string_view piece) {
  waiting_ += piece;
  std::string shown;
  std::string_view left = waiting_;
  while (!left.empty()) {
    const text::Character first = text::first_character(left);
    if (first.value != text::kInvalid)
      shown += left.substr(0, first.size);
    else if (left.size() < 4 && is_unfinished(left))
      break;
    else
      shown += kReplacement;
    left.remove_prefix(first.size);
  }
  waiting_ = std::string(left);
  return shown;
}

std::string Utf8Stream::finish() {
  const bool unfinished = !std::exchange(waiting_, "").empty();
  return unfinished ? std::string(kReplacement) : "";
}

}  // namespace xsa::generate
