#include "xsa/text/utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "xsa/base/rng.h"

namespace xsa::text {
namespace {

std::int64_t invalid(std::string_view text) {
  Utf8Counter counter;
  counter.add(text);
  return counter.invalid_bytes();
}

TEST(Utf8Counter, AcceptsEveryCharacterOfUnicodeAndRefusesTheSurrogates) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    append_utf8(c, text);
    ASSERT_EQ(invalid(text) > 0, c >= 0xD800 && c < 0xE000)
        << "U+" << std::hex << static_cast<std::uint32_t>(c);
  }
}

TEST(Utf8Counter, CountsTheBytesOfEveryKindOfMistake) {
  EXPECT_EQ(invalid("\x80"), 1) << "a continuation alone";
  EXPECT_EQ(invalid("\xC0\xAF"), 2) << "overlong in two";
  EXPECT_EQ(invalid("\xE0\x9F\xBF"), 3) << "overlong in three";
  EXPECT_EQ(invalid("\xF0\x8F\xBF\xBF"), 4) << "overlong in four";
  EXPECT_EQ(invalid("\xF4\x90\x80\x80"), 4) << "above U+10FFFF";
  EXPECT_EQ(invalid("\xFF\xFE"), 2) << "no sequence begins so";
  EXPECT_EQ(invalid("\xE2\x82z"), 2) << "broken off by a letter, which is fine";
  EXPECT_EQ(invalid("\xE2\xE2\x82\xAC"), 1) << "broken off by a good sequence";
  EXPECT_EQ(invalid("\xE2\x82"), 2) << "broken off by the end";
  EXPECT_EQ(invalid("Gr\xFC\xDF"
                    "e"),
            2)
      << "Latin-1";
}

TEST(Utf8Counter, CountsTheSameWhereverTheTextIsCut) {
  Rng rng(2);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    while (text.size() < 60) {
      if (rng.below(4) == 0)
        text += static_cast<char>(rng.below(256));
      else
        append_utf8(static_cast<char32_t>(rng.below(0xD800)), text);
    }
    Utf8Counter counter;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t size = 1 + rng.below(20);
      counter.add(std::string_view(text).substr(i, size));
      i += size;
    }
    ASSERT_EQ(counter.invalid_bytes(), invalid(text)) << "round " << round;
  }
}

TEST(Characters, AreTheSameForwardsAndBackwardsInRandomBytes) {
  Rng rng(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    while (text.size() < 12) {
      if (rng.below(2) == 0)
        text += static_cast<char>(rng.below(256));
      else
        append_utf8(static_cast<char32_t>(rng.below(0xD800)), text);
    }
    std::vector<char32_t> forwards, backwards;
    std::int64_t bad = 0;
    for (std::string_view rest = text; !rest.empty();) {
      const Character c = first_character(rest);
      forwards.push_back(c.value);
      bad += c.value == kInvalid;
      rest.remove_prefix(c.size);
    }
    for (std::string_view rest = text; !rest.empty();) {
      const Character c = last_character(rest);
      backwards.push_back(c.value);
      rest.remove_suffix(c.size);
    }
    std::reverse(backwards.begin(), backwards.end());
    ASSERT_EQ(forwards, backwards) << "round " << round;
    ASSERT_EQ(bad, invalid(text)) << "round " << round;
  }
}

TEST(Characters, EveryOneSurvivesTheRoundTripAndTheSurrogatesDoNot) {
  for (char32_t c = 0; c <= 0x110000; ++c) {
    std::string text;
    append_utf8(c, text);
    const bool good = c < 0x110000 && (c < 0xD800 || c >= 0xE000);
    ASSERT_EQ(first_character(text).value, good ? c : kInvalid);
    ASSERT_EQ(first_character(text).size, good ? text.size() : 1u);
    ASSERT_EQ(last_character(text).value, good ? c : kInvalid);
  }
}

}  // namespace
}  // namespace xsa::text
