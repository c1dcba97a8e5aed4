#include "xsa/data/recorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string text_of(const std::string& word) {
  std::string text;
  for (int line = 0; line < 200; ++line) text += word + " " + std::to_string(line) + "\n";
  return text;
}

class Recorded : public ::testing::Test {
 protected:
  Recorded() : before_(fs::current_path()) {
    atomic_write(folder_ / "home" / "text.txt", text_of("home"));
    fs::create_directory(folder_ / "away");
    fs::current_path(folder_ / "home");
    const Dataset dataset = open_dataset(config_);
    record_ = record_of(config_, dataset);
    fs::current_path(folder_ / "away");
  }
  ~Recorded() override { fs::current_path(before_); }

  RecordedData open() const { return open_recorded(config_, record_, "the run", "Bring it back"); }

  testing::TempFolder folder_;
  const fs::path before_;
  DataConfig config_{.source = "text.txt", .cache = "cache"};
  DataRecord record_;
};

TEST_F(Recorded, DataIsFoundFromAnyWorkingFolder) {
  EXPECT_EQ(record_.location, (folder_ / "home" / "text.txt").string());
  EXPECT_EQ(open().dataset.sha256(), record_.sha256);
  EXPECT_TRUE(fs::is_empty(folder_ / "away")) << "its shards lie where they lay";
}

TEST_F(Recorded, AnotherTextOfTheSameNameIsNotTaken) {
  atomic_write("text.txt", text_of("away"));
  EXPECT_EQ(open().dataset.sha256(), record_.sha256);
}

TEST_F(Recorded, DataThatMovedHereIsKnownByItsHash) {
  fs::rename(folder_ / "home" / "text.txt", "text.txt");
  const RecordedData found = open();
  EXPECT_EQ(found.dataset.sha256(), record_.sha256);
  EXPECT_EQ(record_of(found.config, found.dataset).location,
            (folder_ / "away" / "text.txt").string());
}

TEST_F(Recorded, DataThatChangedIsRefusedWithWhatWasFound) {
  atomic_write(folder_ / "home" / "text.txt", text_of("changed"));
  EXPECT_THAT([&] { open(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("the run: expected the tokens"),
                                         HasSubstr(record_.sha256), HasSubstr("has changed since"),
                                         HasSubstr("away/text.txt'"), HasSubstr("no such file"),
                                         HasSubstr("Bring it back"))));
}

TEST_F(Recorded, AnOlderRunsDataIsHeldToItsHashToo) {
  record_.location = record_.cache = "";
  atomic_write("text.txt", text_of("away"));
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("expected the tokens")));
  atomic_write("text.txt", text_of("home"));
  EXPECT_EQ(open().dataset.sha256(), record_.sha256);
}

TEST_F(Recorded, ShakespeareHasNoPlace) {
  config_.source = "shakespeare";
  const Dataset dataset = open_dataset(config_);
  EXPECT_EQ(record_of(config_, dataset).location, "shakespeare");
}

}  // namespace
}  // namespace xsa::data
