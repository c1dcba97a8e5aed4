#include "xsa/generate/utf8_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "xsa/base/json.h"
#include "xsa/base/rng.h"
#include "xsa/text/utf8.h"

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

TEST(Utf8Stream, ReplacesACharacterThatIsCutByOneCharacter) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(byte_by_byte("\xE2\x82z"), (Shown{"", "", bad + "z", ""}));
  EXPECT_EQ(byte_by_byte("\xF0\x9F\xA6z"), (Shown{"", "", "", bad + "z", ""}));
  EXPECT_EQ(byte_by_byte("\xF0\x9F\xE2\x82\xAC"), (Shown{"", "", bad, "", "\xE2\x82\xAC", ""}));
}

TEST(Utf8Stream, ShowsInPiecesWhatTheWholeTextIsInJson) {
  const std::string pool = "a\x80\xBF\xC2\xE0\xA0\xE2\x82\xED\x9F\xF0\x90\x8F\xF4\xFF";
  Rng rng(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text, shown;
    for (std::size_t length = rng.below(9); length > 0; --length)
      text += pool[rng.below(pool.size())];
    for (const std::string& part : byte_by_byte(text)) shown += part;
    EXPECT_EQ(shown, text::replace_broken(text));
    const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
    EXPECT_EQ(Json::parse(json).get<std::string>(), shown) << Json(shown).dump();
  }
}

TEST(Utf8Stream, BeginsAnewAfterItsEnd) {
  Utf8Stream stream;
  stream.add("\xE2");
  stream.finish();
  EXPECT_EQ(stream.add("\x82\xAC"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace xsa::generate
