#include "xsa/base/parse_json.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/support/temp_folder.h"

namespace xsa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

std::string nested(std::size_t levels, bool closed = true) {
  return std::string(levels, '[') + (closed ? std::string(levels, ']') : "");
}

TEST(ParseJson, TakesAHundredLevels) {
  EXPECT_EQ(parse_json(nested(100)).dump(), nested(100));
  EXPECT_EQ(parse_sorted_json(nested(100)).dump(), nested(100));
  EXPECT_EQ(try_parse_json(nested(100)).dump(), nested(100));
}

TEST(ParseJson, RefusesMore) {
  for (const std::size_t levels : {std::size_t{101}, std::size_t{1'000'000}}) {
    for (const bool closed : {true, false}) {
      for (const std::string& text :
           {nested(levels, closed), "{\"a\": " + nested(levels, closed) + "}"}) {
        EXPECT_THAT(error_of([&] { parse_json(text); }),
                    HasSubstr("at most 100 levels of nesting"));
        EXPECT_THAT(error_of([&] { parse_sorted_json(text); }),
                    HasSubstr("at most 100 levels of nesting"));
        EXPECT_TRUE(try_parse_json(text).is_discarded());
      }
    }
  }
}

TEST(ParseJson, CountsNoBracketWithinText) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("[\"" + brackets + "\"]")[0], brackets);
  EXPECT_EQ(parse_json(R"(["\"[", "\\"])").dump(), R"(["\"[","\\"])");
  EXPECT_THAT(error_of([&] { parse_json(R"(["\\",)" + brackets); }),
              HasSubstr("at most 100 levels of nesting"));
}

TEST(ParseJson, CountsLevelsAndNotNeighbours) {
  std::string text = "[0";
  for (int i = 0; i < 1000; ++i) text += ",[],{}";
  EXPECT_EQ(parse_json(text + "]").size(), 2001u);
}

TEST(ParseJson, TellsThePlaceOfTheFirstMistake) {
  EXPECT_THAT(error_of([] { parse_json("{\"a\": 1,\n \"b\": }"); }),
              HasSubstr("expected JSON, but parse error at line 2, column 7: "));
  EXPECT_TRUE(try_parse_json("{").is_discarded());
}

TEST(ParseJson, GuardsFiles) {
  const TempFolder folder;
  const auto path = folder.write("deep.json", "{\"n_layer\": " + nested(1'000'000) + "}");
  EXPECT_THAT(error_of([&] { read_json_file(path); }),
              AllOf(HasSubstr("deep.json"), HasSubstr("at most 100 levels of nesting")));
}

}  // namespace
}  // namespace xsa
