#include "xsa/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(MetricsFile, HasEachLineAsSoonAsItIsAppended) {
  const testing::TempFolder folder;
  MetricsFile metrics(folder / "metrics.jsonl", 0);
  metrics.append({{"step", 1}});
  EXPECT_EQ(read_file(folder / "metrics.jsonl"), "{\"step\":1}\n");
  metrics.append({{"step", 2}});
  EXPECT_EQ(read_file(folder / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(MetricsFile, DropsWhatCameAfterTheOffset) {
  const testing::TempFolder folder;
  std::int64_t offset = 0;
  {
    MetricsFile metrics(folder / "metrics.jsonl", 0);
    metrics.append({{"step", 1}});
    offset = metrics.sync();
    metrics.append({{"step", 2}, {"note", "taken again after a resume"}});
  }
  MetricsFile metrics(folder / "metrics.jsonl", offset);
  metrics.append({{"step", 3}});
  EXPECT_EQ(read_file(folder / "metrics.jsonl"), "{\"step\":1}\n{\"step\":3}\n");
  EXPECT_EQ(metrics.sync(), 2 * offset);
}

TEST(MetricsFile, RefusesAFileShorterThanTheOffset) {
  const testing::TempFolder folder;
  atomic_write(folder / "metrics.jsonl", "{}\n");
  EXPECT_THAT([&] { MetricsFile(folder / "metrics.jsonl", 10); },
              ThrowsMessage<Error>(AllOf(HasSubstr("metrics.jsonl"), HasSubstr("at least 10 bytes"),
                                         HasSubstr("got 3"))));
  EXPECT_EQ(read_file(folder / "metrics.jsonl"), "{}\n");
}

}  // namespace
}  // namespace xsa::train
