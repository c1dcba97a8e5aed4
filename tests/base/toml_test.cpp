#include "xsa/base/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Toml : public testing::Test {
 protected:
  Json read(std::string_view text) const {
    atomic_write(path_, text);
    return read_toml_file(path_);
  }
  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / "toml_test" / "recipe.toml";
};

TEST_F(Toml, BecomesJsonWithNestedTables) {
  EXPECT_EQ(read(R"(
title = "demo"  # a comment
[train]
steps = 300
lr = 2e-3
decay = true
[train.inner]
list = [1, 2.5, "x", [false]]
point = {x = 1, y = -2}
)"),
            Json::parse(R"({"title": "demo", "train": {"steps": 300, "lr": 0.002, "decay": true,
                "inner": {"list": [1, 2.5, "x", [false]], "point": {"x": 1, "y": -2}}}})"));
}

TEST_F(Toml, KeepsIntegersAndNumbersApart) {
  const Json json = read("whole = 1_000\nreal = 1.0\nlarge = 9223372036854775807\n");
  EXPECT_TRUE(json["whole"].is_number_integer());
  EXPECT_TRUE(json["real"].is_number_float());
  EXPECT_EQ(json["large"].get<std::int64_t>(), 9223372036854775807);
}

TEST_F(Toml, AnEmptyFileIsAnEmptyTable) { EXPECT_EQ(read(""), Json::object()); }

TEST_F(Toml, NamesFileLineAndColumnOfAMistake) {
  EXPECT_THAT([&] { read("[train]\nsteps = = 3\n"); },
              ThrowsMessage<UsageError>(
                  AllOf(HasSubstr(path_.string() + ":2:9"), HasSubstr("not valid TOML"))));
  EXPECT_THAT([&] { read("a = 1\na = 2\n"); }, ThrowsMessage<UsageError>(HasSubstr(":2:")));
  EXPECT_THROW(read("a = \"\xff\"\n"), UsageError);
}

TEST_F(Toml, RefusesDatesAndTimes) {
  EXPECT_THAT([&] { read("[train]\nwhen = 2026-11-29\n"); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr(":2:8"), HasSubstr("dates"))));
  EXPECT_THROW(read("when = [07:32:00]\n"), UsageError);
  EXPECT_THROW(read("when = 2026-11-29T07:32:00Z\n"), UsageError);
}

TEST_F(Toml, RefusesHostileDepth) {
  EXPECT_THROW(read("a = " + std::string(100'000, '[')), UsageError);
}

TEST_F(Toml, AMissingFileIsAnErrorThatNamesIt) {
  EXPECT_THAT([] { read_toml_file("/nowhere/recipe.toml"); },
              ThrowsMessage<Error>(HasSubstr("/nowhere/recipe.toml")));
}

}  // namespace
}  // namespace xsa
