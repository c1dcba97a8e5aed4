// Text that comes in pieces cut anywhere, as tokens give it, let out as whole characters.
#pragma once

#include <string>
#include <string_view>

namespace xsa::generate {

class Utf8Stream {
 public:
  /// What can be shown after this piece: every character that is whole, and U+FFFD for what is
  /// none, as text::replace_broken has it.
  std::string add(std::string_view piece);
  /// U+FFFD for what is left of an unfinished character, or "".
  std::string finish();

 private:
  std::string waiting_;
};

}  // namespace xsa::generate
