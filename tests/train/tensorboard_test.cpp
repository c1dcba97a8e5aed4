#include "xsa/train/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Crc32c, HasTheKnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char i = 0; i < 32; ++i) rising += i;
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
}

TEST(TfRecord, IsLengthDataAndMaskedChecksums) {
  const std::string record = tf_record("123456789");
  ASSERT_EQ(record.size(), 8 + 4 + 9 + 4u);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  // rotr(0xe3069283, 15) + 0xa282ead8, little-endian.
  EXPECT_EQ(record.substr(21), "\xe5\xb0\x8a\xc7");
}

std::vector<std::string> tags(const Json& line) {
  std::vector<std::string> names;
  for (const Scalar& scalar : scalars_of(line)) names.push_back(scalar.tag);
  return names;
}

TEST(Scalars, AreALinesFigures) {
  EXPECT_THAT(tags({{"type", "train"},
                    {"step", 10},
                    {"tokens", 300},
                    {"loss", 3.0},
                    {"lr", 0.1},
                    {"elapsed_s", 1.0}}),
              ElementsAre("train/loss", "train/lr"));
  EXPECT_THAT(tags({{"type", "eval"},
                    {"step", 1},
                    {"name", "piqa"},
                    {"metrics", {{"acc", 0.5}, {"x", nullptr}}}}),
              ElementsAre("eval/piqa/acc"));
  const Json diagnose = {{"type", "diagnose"},
                         {"step", 1},
                         {"layers",
                          {{{"layer", 0}, {"value_cosine", nullptr}, {"sink_mass", 0.0}},
                           {{"layer", 1}, {"value_cosine", 0.25}, {"sink_mass", 0.5}}}}};
  EXPECT_THAT(tags(diagnose),
              ElementsAre("diagnose/sink_mass/layer_0", "diagnose/value_cosine/layer_1",
                          "diagnose/sink_mass/layer_1"));
  EXPECT_EQ(scalars_of(diagnose)[1].value, 0.25);
}

TEST(EventFile, IsCutBackToItsOffset) {
  const testing::TempFolder folder;
  const auto line = [](const char* name) {
    return Json{{"type", "train"}, {"step", 1}, {name, 2.0}};
  };
  std::int64_t offset = 0;
  {
    EventFile events(folder / kEventFile, 0);
    events.append(line("first"));
    offset = events.sync();
    events.append(line("second"));
  }
  {
    EventFile events(folder / kEventFile, offset);
    events.append(line("third"));
  }
  const std::string text = read_file(folder / kEventFile);
  EXPECT_THAT(text, StartsWith(std::string("\x1a\0\0\0\0\0\0\0", 8)));  // 9 + 2 + 15 bytes
  EXPECT_THAT(text, HasSubstr("brain.Event:2"));
  EXPECT_THAT(text, HasSubstr("train/first"));
  EXPECT_THAT(text, Not(HasSubstr("train/second")));
  EXPECT_THAT(text, HasSubstr("train/third"));
}

TEST(EventFile, BeginsAnewWhereWhatWasThereIsGone) {
  const testing::TempFolder folder;
  EventFile(folder / "missing", 1000);
  EXPECT_THAT(read_file(folder / "missing"), HasSubstr("brain.Event:2"));
  atomic_write(folder / "short", "not enough");
  EventFile(folder / "short", 1000);
  EXPECT_THAT(read_file(folder / "short"), Not(HasSubstr("not enough")));
}

}  // namespace
}  // namespace xsa::train
