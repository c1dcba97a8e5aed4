#include "xsa/base/json.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

TEST(JsonFile, KeepsTheOrderOfKeysAndEndsWithANewline) {
  const TempFolder folder;
  write_json_file(folder / "a.json", {{"z", 1}, {"a", {{"y", 2.5}, {"b", "text"}}}});
  EXPECT_EQ(read_file(folder / "a.json"),
            "{\n  \"z\": 1,\n  \"a\": {\n    \"y\": 2.5,\n    \"b\": \"text\"\n  }\n}\n");
}

TEST(JsonFile, ReturnsEveryNumberExactly) {
  const TempFolder folder;
  const Json json{{"small", 5e-324},
                  {"third", 1.0 / 3},
                  {"seed", std::numeric_limits<std::uint64_t>::max()},
                  {"least", std::numeric_limits<std::int64_t>::min()}};
  write_json_file(folder / "a.json", json);
  EXPECT_EQ(read_json_file(folder / "a.json"), json);
}

TEST(JsonFile, WritesNumbersThatAreNotFiniteAsNull) {
  const TempFolder folder;
  write_json_file(folder / "a.json", {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_TRUE(read_json_file(folder / "a.json").at("loss").is_null());
}

TEST(JsonFile, WritesBytesThatAreNotUtf8AsReplacementCharacters) {
  const TempFolder folder;
  write_json_file(folder / "a.json", {{"name", "caf\xE9"}});
  EXPECT_EQ(read_json_file(folder / "a.json").at("name"), "caf\xEF\xBF\xBD");
}

TEST(JsonFile, NamesFileAndPlaceOfTheFirstMistake) {
  const TempFolder folder;
  const auto path = folder.write("bad.json", "{\"a\": 1,\n \"b\": }");
  EXPECT_THAT(error_of([&] { read_json_file(path); }),
              AllOf(HasSubstr("bad.json"), HasSubstr("line 2, column 7")));
  EXPECT_THAT(error_of([&] { read_json_file(folder / "none.json"); }), HasSubstr("none.json"));
}

}  // namespace
}  // namespace xsa
