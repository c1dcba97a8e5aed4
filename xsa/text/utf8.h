// UTF-8 by Unicode 15's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace xsa::text {

/// One character of a text, or one byte of it that belongs to no well-formed sequence.
struct Character {
  char32_t value;    // kInvalid for such a byte
  std::size_t size;  // in bytes
};
inline constexpr char32_t kInvalid = 0xFFFFFFFF;

/// The first and the last one of a text that is not empty. Walking either way meets the same ones.
Character first_character(std::string_view text);
Character last_character(std::string_view text);
void append_utf8(char32_t character, std::string& text);

/// What stands at the beginning of a text where no well-formed character does: as many bytes as
/// begin one, or else the first byte. One U+FFFD stands for it: Unicode's practice of maximal
/// subparts (chapter 3.9), which Python and JSON's writers follow.
struct Broken {
  std::size_t size;
  bool may_go_on;  // the text ends, and further bytes could make a character of it
};
Broken broken_character(std::string_view text);
/// The text with U+FFFD for whatever belongs to no character.
std::string replace_broken(std::string_view text);
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Counts the bytes that belong to no well-formed UTF-8 sequence: tells text from binary data. The
/// text may come in pieces, cut anywhere.
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
