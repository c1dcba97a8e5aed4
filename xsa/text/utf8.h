// How much of a text is well-formed UTF-8: tells text from binary data.
#pragma once

#include <cstdint>
#include <string_view>

namespace xsa::text {

/// Counts the bytes that belong to no well-formed UTF-8 sequence (Unicode 15, table 3-7: no
/// overlong forms, no surrogates, nothing above U+10FFFF). The text may come in pieces, cut
/// anywhere.
class Utf8Counter {
 public:
  void add(std::string_view piece);
  /// As if the text ended here: an unfinished sequence counts as invalid.
  std::int64_t invalid_bytes() const { return invalid_ + seen_; }

 private:
  void add_byte(unsigned char byte);
  void start(unsigned char byte);

  std::int64_t invalid_ = 0;
  int seen_ = 0, missing_ = 0;              // bytes of the sequence in progress
  unsigned char lowest_ = 0, highest_ = 0;  // what its next byte may be
};

}  // namespace xsa::text
