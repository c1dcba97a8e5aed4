#include "xsa/generate/utf8_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace xsa::generate {
namespace {

/// What is shown after each byte, and at the end.
std::vector<std::string> byte_by_byte(const std::string& text) {
  Utf8Stream stream;
  std::vector<std::string> shown;
  for (const char byte : text) shown.push_back(stream.add({&byte, 1}));
  shown.push_back(stream.finish());
  return shown;
}

using Shown = std::vector<std::string>;

TEST(Utf8Stream, LetsOutWholeCharacters) {
  EXPECT_EQ(byte_by_byte("aé"), (Shown{"a", "", "é", ""}));
  EXPECT_EQ(byte_by_byte("\xF0\x9F\xA6\x8A!"), (Shown{"", "", "", "\xF0\x9F\xA6\x8A", "!", ""}));
  EXPECT_EQ(byte_by_byte("\xE0\xA0\x80"), (Shown{"", "", "\xE0\xA0\x80", ""}));
}

TEST(Utf8Stream, PassesPiecesOfAnyLength) {
  Utf8Stream stream;
  EXPECT_EQ(stream.add("one \xE2\x82"), "one ");
  EXPECT_EQ(stream.add(""), "");
  EXPECT_EQ(stream.add("\xAC two"), "\xE2\x82\xAC two");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ReplacesBytesThatBeginNoCharacter) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(byte_by_byte("\x80z"), (Shown{bad, "z", ""}));
  EXPECT_EQ(byte_by_byte("\xC3z"), (Shown{"", bad + "z", ""}));
  EXPECT_EQ(byte_by_byte("\xFF"), (Shown{bad, ""}));
  EXPECT_EQ(byte_by_byte("\xC0\x80"), (Shown{bad, bad, ""}));                // overlong
  EXPECT_EQ(byte_by_byte("\xED\xA0\x80"), (Shown{"", bad + bad, bad, ""}));  // a surrogate
  EXPECT_EQ(byte_by_byte("\xF0\x9F\xA6"), (Shown{"", "", "", bad}));
}

TEST(Utf8Stream, BeginsAnewAfterItsEnd) {
  Utf8Stream stream;
  stream.add("\xE2");
  stream.finish();
  EXPECT_EQ(stream.add("\x82\xAC"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace xsa::generate
