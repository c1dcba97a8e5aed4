#include "xsa/data/dataset.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace xsa::data {
namespace {

using xsa::testing::TempFolder;

TEST(OpenDataset, SmokesShakespeare) {
  const TempFolder folder;
  DataConfig config;
  config.cache = folder / "cache";
  const Dataset dataset = open_dataset(config);
  EXPECT_EQ(dataset.validation.bytes, 426'559);
}

}  // namespace
}  // namespace xsa::data
