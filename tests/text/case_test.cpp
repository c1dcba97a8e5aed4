#include "xsa/text/case.h"

#include <gtest/gtest.h>

#include <span>

#include "xsa/base/hash.h"
#include "xsa/text/utf8.h"

namespace xsa::text {
namespace {

std::string utf8(char32_t c) {
  std::string text;
  append_utf8(c, text);
  return text;
}

TEST(Capitalize, RaisesTheFirstCharacterAndLowersAllOthers) {
  EXPECT_EQ(capitalize("she and Tom"), "She and tom");
  EXPECT_EQ(capitalize("élan VITAL"), "Élan vital");
  EXPECT_EQ(capitalize("ÉCOLE ÉLAN"), "École élan");
  EXPECT_EQ(capitalize(" A"), " a");
  EXPECT_EQ(capitalize("1A"), "1a");
  EXPECT_EQ(capitalize(""), "");
}

TEST(Capitalize, UsesTitleCaseAndMappingsToSeveralCharacters) {
  EXPECT_EQ(capitalize("ǆ"), "ǅ") << "title case, not upper case";
  EXPECT_EQ(capitalize("ßa"), "Ssa");
  EXPECT_EQ(capitalize("ﬃx"), "Ffix");
  EXPECT_EQ(capitalize("x\u0130"), "Xi\u0307");
  EXPECT_EQ(capitalize("\u0390"), "\u0399\u0308\u0301");
}

TEST(Capitalize, LowersASigmaToItsFinalFormAtTheEndOfAWord) {
  EXPECT_EQ(capitalize("ΟΔΟΣ"), "Οδος");
  EXPECT_EQ(capitalize("ΟΔΟΣ."), "Οδος.");
  EXPECT_EQ(capitalize("ΟΔΟΣΑ"), "Οδοσα");
  EXPECT_EQ(capitalize("Α Σ"), "Α σ") << "a word of its own";
  EXPECT_EQ(capitalize("ΑΣ'Α"), "Ασ'α") << "an apostrophe is ignored";
  EXPECT_EQ(capitalize("Σ"), "Σ");
}

TEST(Capitalize, LeavesBytesOutsideUtf8AsTheyAre) {
  EXPECT_EQ(capitalize("\xFF"
                       "ABC\xC3"),
            "\xFF"
            "abc\xC3");
}

// The digest is Python's: tools/unicode_tables.py prints it.
TEST(Capitalize, TreatsEveryCharacterInEveryPlaceAsPythonDoes) {
  Sha256 hash;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string it = utf8(c);
    const std::string text = capitalize(it + it + " AΣ" + it + "AΣ" + it + "\n");
    hash.add(std::as_bytes(std::span(text)));
  }
  EXPECT_EQ(hash.hex(), "8368100d02b998cfa9fe57e8f7ab6e867585c51f39a4ff17c6567f5853999946");
}

TEST(Strip, TakesPythonsSpacesFromTheEnds) {
  EXPECT_EQ(strip("\t\x1c\x1f a  b\u2003\u3000\u0085\n"), "a  b");
  EXPECT_EQ(lstrip(" \u00a0x "), "x ");
  EXPECT_EQ(rstrip(" x \u2028"), " x");
  EXPECT_EQ(strip("\u200b x"), "\u200b x") << "a zero-width space is none";
  EXPECT_EQ(strip("\xA0 \xC2"), "\xA0 \xC2") << "bytes outside UTF-8 are none";
  EXPECT_EQ(strip(" \n "), "");
  EXPECT_EQ(strip(""), "");
}

TEST(Strip, KnowsPythons29Spaces) {
  int spaces = 0;
  for (char32_t c = 0; c < 0x110000; ++c) spaces += is_python_space(c);
  EXPECT_EQ(spaces, 29);
  EXPECT_FALSE(is_python_space(kInvalid));
}

TEST(CodePoints, CountsCharactersAndBadBytes) {
  EXPECT_EQ(code_points(""), 0);
  EXPECT_EQ(code_points("aé€😀"), 4);
  EXPECT_EQ(code_points("a\xE2\x82"), 3);
}

}  // namespace
}  // namespace xsa::text
