#include "xsa/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "tests/checkpoint/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/rng.h"

namespace xsa::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

/// What the tests save at a step: every part tells the step. `memory` holds the tensors' bytes.
struct Sample {
  std::string memory;
  Contents contents;
  explicit Sample(std::int64_t step, std::size_t bytes = 1000)
      : memory(bytes, static_cast<char>(step)) {
    const auto data = std::as_bytes(std::span(memory));
    contents.step = step;
    contents.model = {{"weight", "I8", {static_cast<std::int64_t>(bytes)}, data},
                      {"empty", "F32", {0, 3}, {}}};
    contents.optimizer = {{"weight.exp_avg", "U8", {8}, data.first(8)}};
    contents.state = {{"step", step}, {"rng", "abc"}};
    contents.recipe = {{"train", {{"steps", 300}}}};
  }
};

fs::path save_step(const fs::path& root, std::int64_t step, std::int64_t keep = 0,
                   std::size_t bytes = 1000) {
  return save(root, Sample(step, bytes).contents, keep);
}

void expect_sample(const Reader& reader, std::int64_t step) {
  EXPECT_EQ(reader.step(), step);
  EXPECT_EQ(reader.state().at("step").get<std::int64_t>(), step);
  const auto bytes = reader.model().at("weight").bytes;
  EXPECT_FALSE(bytes.empty());
  EXPECT_TRUE(std::ranges::all_of(
      bytes, [step](std::byte value) { return value == static_cast<std::byte>(step); }));
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

void overwrite(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string complaint(const fs::path& path) {
  try {
    const Reader reader(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

class Checkpoint : public testing::Test {
 protected:
  const TempFolder temp_;
  const fs::path run_ = temp_.path() / "run", root_ = run_ / "checkpoints";
};

TEST_F(Checkpoint, ComesBackAsItWasSaved) {
  const Sample sample(300);
  const fs::path folder = save(root_, sample.contents, 2);
  EXPECT_EQ(folder, root_ / "step-000300");
  const Reader reader(folder);
  EXPECT_EQ(reader.folder(), folder);
  EXPECT_EQ(reader.step(), 300);
  EXPECT_EQ(reader.state(), sample.contents.state);
  EXPECT_EQ(reader.recipe(), sample.contents.recipe);
  EXPECT_EQ(reader.model().tensors().size(), 2U);
  EXPECT_EQ(reader.model().at("empty").shape, (std::vector<std::int64_t>{0, 3}));
  EXPECT_TRUE(
      std::ranges::equal(reader.model().at("weight").bytes, sample.contents.model[0].bytes));
  EXPECT_TRUE(std::ranges::equal(reader.optimizer().at("weight.exp_avg").bytes,
                                 sample.contents.optimizer[0].bytes));
}

TEST_F(Checkpoint, HoldsExactlyItsFiles) {
  save_step(root_, 5);
  EXPECT_EQ(names_in(root_), (std::set<std::string>{"LATEST", "step-000005"}));
  EXPECT_EQ(names_in(root_ / "step-000005"),
            (std::set<std::string>{"manifest.json", "model.safetensors", "optimizer.safetensors",
                                   "state.json", "recipe.json"}));
  EXPECT_EQ(read_file(root_ / "LATEST"), "step-000005\n");
}

TEST_F(Checkpoint, IsFoundFromItsFolderItsRootAndItsRun) {
  save_step(root_, 1);
  save_step(root_, 2);
  expect_sample(Reader(root_ / "step-000001"), 1);
  expect_sample(Reader(root_ / "step-000001" / ""), 1);
  expect_sample(Reader(root_), 2);
  expect_sample(Reader(run_), 2);
  expect_sample(Reader(run_ / ""), 2);
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  expect_sample(Reader("."), 2);
  expect_sample(Reader("step-000001"), 1);
  fs::current_path(before);
  fs::rename(root_ / "step-000001", run_ / "best");
  expect_sample(Reader(run_ / "best"), 1);
}

TEST_F(Checkpoint, LatestIsNothingBeforeTheFirstSave) {
  EXPECT_EQ(latest(root_), std::nullopt);
  fs::create_directories(root_);
  EXPECT_EQ(latest(root_), std::nullopt);
  save_step(root_, 1);
  EXPECT_EQ(latest(root_), root_ / "step-000001");
}

TEST_F(Checkpoint, KeepsTheNewest) {
  for (std::int64_t step = 8; step <= 12; ++step) save_step(root_, step, 2);
  EXPECT_EQ(names_in(root_), (std::set<std::string>{"LATEST", "step-000011", "step-000012"}));
}

TEST_F(Checkpoint, KeepsAllIfAsked) {
  for (std::int64_t step = 1; step <= 5; ++step) save_step(root_, step, 0);
  EXPECT_EQ(names_in(root_).size(), 6U);
}

TEST_F(Checkpoint, NeverPrunesTheOneJustSavedThoughLaterStepsLieAround) {
  for (const std::int64_t step : {100, 200, 300}) save_step(root_, step);
  save_step(root_, 150, 2);
  EXPECT_EQ(names_in(root_), (std::set<std::string>{"LATEST", "step-000100", "step-000150"}));
  expect_sample(Reader(root_), 150);
}

/// Saves with `best` as the best step.
void save_with_best(const fs::path& root, std::int64_t step, std::int64_t best, std::int64_t keep) {
  Sample sample(step);
  sample.contents.best_step = best;
  save(root, sample.contents, keep);
}

TEST_F(Checkpoint, KeepsTheBestBesideTheNewest) {
  for (const std::int64_t step : {10, 20, 30, 40, 50})
    save_with_best(root_, step, std::min<std::int64_t>(step, 20), 2);
  EXPECT_EQ(names_in(root_),
            (std::set<std::string>{"BEST", "LATEST", "step-000020", "step-000040", "step-000050"}));
  EXPECT_EQ(best(root_), root_ / "step-000020");
  save_with_best(root_, 60, 60, 2);
  EXPECT_EQ(names_in(root_),
            (std::set<std::string>{"BEST", "LATEST", "step-000050", "step-000060"}));
}

TEST_F(Checkpoint, ABestThatIsGoneIsNotNamed) {
  save_with_best(root_, 10, 10, 0);
  fs::remove_all(root_ / "step-000010");
  save_with_best(root_, 20, 10, 0);
  EXPECT_EQ(best(root_), std::nullopt);
  EXPECT_EQ(names_in(root_), (std::set<std::string>{"LATEST", "step-000020"}));
}

TEST_F(Checkpoint, IsNamedBehindItsRun) {
  for (const std::int64_t step : {200, 300, 400}) save_with_best(root_, step, 200, 0);
  const auto named = [](const fs::path& path, const char* name) {
    return named_checkpoint(path.string() + name);
  };
  for (const fs::path& way : {run_, run_ / "", root_}) {
    EXPECT_EQ(named(way, "@best"), root_ / "step-000200");
    EXPECT_EQ(named(way, "@latest"), root_ / "step-000400");
    EXPECT_EQ(named(way, "@300"), root_ / "step-000300");
    EXPECT_EQ(named_checkpoint(way), way);
    for (const char* name : {"@350", "@", "@bset", "@3e2", "@-1"})
      EXPECT_THAT([&] { named(way, name); },
                  ThrowsMessage<UsageError>(AllOf(HasSubstr("expected @best, @latest or the step"),
                                                  HasSubstr("200 (best), 300, 400 (latest)"))))
          << name;
  }
  // Names of their own, and what is no run.
  fs::create_directory(temp_.path() / "a@best");
  EXPECT_EQ(named_checkpoint(temp_.path() / "a@best"), temp_.path() / "a@best");
  EXPECT_EQ(named_checkpoint("nowhere@best"), "nowhere@best");
}

TEST_F(Checkpoint, StepsBeyondSixDigitsStayInOrder) {
  for (const std::int64_t step : {999'999, 1'000'000, 1'000'001}) save_step(root_, step, 2);
  EXPECT_EQ(names_in(root_), (std::set<std::string>{"LATEST", "step-1000000", "step-1000001"}));
  EXPECT_EQ(Reader(root_).step(), 1'000'001);
}

TEST_F(Checkpoint, TheSameStepAgainReplacesTheFormer) {
  save_step(root_, 7);
  Sample other(7);
  other.contents.state["note"] = "second";
  save(root_, other.contents, 1);
  EXPECT_EQ(Reader(root_).state().at("note").get<std::string>(), "second");
  EXPECT_EQ(names_in(root_), (std::set<std::string>{"LATEST", "step-000007"}));
}

TEST_F(Checkpoint, LeftoversOfKilledRunsAreRemovedAndNothingElse) {
  save_step(root_, 1);
  fs::create_directories(root_ / "step-000002.partial" / "deep");
  fs::create_directories(root_ / "step-000009.partial");
  atomic_write(root_ / "step-000002.partial" / "model.safetensors", "half");
  atomic_write(root_ / "LATEST.partial", "step-0000");
  atomic_write(root_ / "notes.partial", "mine");
  fs::create_directory(root_ / "step-by-step");
  save_step(root_, 2, 1);
  EXPECT_EQ(names_in(root_),
            (std::set<std::string>{"LATEST", "step-000002", "notes.partial", "step-by-step"}));
  EXPECT_FALSE(fs::exists(root_ / "step-000002" / "deep"));
}

TEST_F(Checkpoint, RefusesANegativeStep) {
  EXPECT_THROW(save_step(root_, -1), Error);
  EXPECT_FALSE(fs::exists(root_));
}

TEST_F(Checkpoint, AFullDiskLeavesTheFormerOneWhole) {
  save_step(root_, 1, 1);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = limit.rlim_max};
  const auto former_action = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string text = "nothing";
  try {
    save_step(root_, 2, 1, 1'000'000);
  } catch (const Error& error) {
    text = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, former_action);
  EXPECT_THAT(text, AllOf(HasSubstr("model.safetensors: cannot write: File too large"),
                          HasSubstr("step-000002 was not saved; those before it are unharmed")));
  EXPECT_EQ(names_in(root_), (std::set<std::string>{"LATEST", "step-000001"}));
  expect_sample(Reader(root_), 1);
  save_step(root_, 2, 1, 1'000'000);
  expect_sample(Reader(root_), 2);
}

TEST_F(Checkpoint, ARootThatIsAFileIsAClearError) {
  atomic_write(root_, "a file");
  EXPECT_THAT([&] { save_step(root_, 1); }, ThrowsMessage<Error>(HasSubstr(root_.string())));
  EXPECT_EQ(read_file(root_), "a file");
}

class DamagedCheckpoint : public Checkpoint {
 protected:
  DamagedCheckpoint() {
    save_step(root_, 1);
    save_step(root_, 2);
  }
  const fs::path folder_ = root_ / "step-000002";
  const std::string remedy_ =
      "; the newest whole checkpoint is " + (root_ / "step-000001").string();
};

TEST_F(DamagedCheckpoint, AnyChangedFileIsNamedWithAnOlderWholeOne) {
  for (const std::string& name : names_in(folder_)) {
    const fs::path path = folder_ / name;
    const std::string whole = read_file(path);
    std::string flipped = whole;
    flipped[whole.size() / 2] ^= 1;
    for (const std::string& damaged : {whole.substr(0, whole.size() - 1), whole.substr(0, 3),
                                       std::string(), whole + "x", flipped}) {
      overwrite(path, damaged);
      for (const fs::path& way : {folder_, root_, run_})
        EXPECT_THAT(complaint(way), AllOf(HasSubstr(path.string()), HasSubstr(remedy_)));
    }
    fs::remove(path);
    EXPECT_THAT(complaint(root_),
                AllOf(HasSubstr(path.string() + ": cannot open"), HasSubstr(remedy_)));
    overwrite(path, whole);
    EXPECT_EQ(complaint(root_), "nothing");
  }
}

TEST_F(DamagedCheckpoint, SizesAndHashesAreTold) {
  const std::string whole = read_file(folder_ / "state.json");
  overwrite(folder_ / "state.json", whole + " ");
  EXPECT_THAT(complaint(root_), HasSubstr(cat("state.json: expected ", whole.size(), " bytes, got ",
                                              whole.size() + 1)));
  std::string edited = whole;
  edited[edited.find("abc")] = 'x';
  overwrite(folder_ / "state.json", edited);
  EXPECT_THAT(complaint(root_), AllOf(HasSubstr("state.json: expected SHA-256 "),
                                      HasSubstr("changed after it was saved")));
}

TEST_F(DamagedCheckpoint, AnEditedManifestIsNoticed) {
  const Json whole = read_json_file(folder_ / "manifest.json");
  const auto complaint_about = [&](const std::function<void(Json&)>& edit) {
    Json edited = whole;
    edit(edited);
    write_json_file(folder_ / "manifest.json", edited);
    return complaint(folder_);
  };
  EXPECT_THAT(complaint_about([](Json& json) { json["version"] = 2; }),
              HasSubstr("expected version 1, got 2"));
  EXPECT_THAT(complaint_about([](Json& json) { json["format"] = "other"; }),
              HasSubstr("expected the format 'xsa-checkpoint'"));
  EXPECT_THAT(complaint_about([](Json& json) { json["step"] = 3; }),
              HasSubstr("changed after it was saved"));
  EXPECT_THAT(complaint_about([](Json& json) { json["step"] = "2"; }), HasSubstr("'step'"));
  EXPECT_THAT(complaint_about([](Json& json) { json.erase("files"); }), HasSubstr("'files'"));
  EXPECT_THAT(complaint_about([](Json& json) { json["files"] = 3; }),
              HasSubstr("expected model.safetensors among its files"));
  EXPECT_THAT(complaint_about([](Json& json) { json["files"].erase("state.json"); }),
              HasSubstr("expected state.json among its files"));
  EXPECT_THAT(complaint_about([](Json& json) { json = Json::array(); }), HasSubstr("'format'"));
  EXPECT_EQ(complaint_about([](Json&) {}), "nothing");
}

TEST_F(DamagedCheckpoint, NoFlippedBitOfTheManifestPasses) {
  fs::remove_all(root_ / "step-000001");
  const std::string whole = read_file(folder_ / "manifest.json");
  Rng rng(5);
  for (int i = 0; i < 1000; ++i) {
    std::string flipped = whole;
    flipped[rng.below(flipped.size())] ^= static_cast<char>(1 << rng.below(8));
    overwrite(folder_ / "manifest.json", flipped);
    EXPECT_THAT(complaint(folder_), HasSubstr("manifest.json: ")) << flipped;
  }
}

TEST_F(DamagedCheckpoint, LatestThatPointsNowhereIsNamed) {
  fs::remove_all(folder_);
  EXPECT_THAT(complaint(run_), AllOf(HasSubstr((root_ / "LATEST").string() +
                                               ": names step-000002, which is not there"),
                                     HasSubstr(remedy_)));
}

TEST_F(DamagedCheckpoint, LatestMustNameACheckpointOfItsRoot) {
  for (const char* name : {"", "step-1", "../run/step-000001", "/etc", "step-000001x",
                           "step--00001", "step-999999999999999999999"}) {
    overwrite(root_ / "LATEST", name);
    EXPECT_THAT(complaint(root_),
                AllOf(HasSubstr("LATEST: expected the name of a checkpoint"),
                      HasSubstr(cat(", got '", name, "'")), HasSubstr("write step-000002 into")))
        << name;
    EXPECT_THROW(latest(root_), Error);
  }
}

TEST_F(DamagedCheckpoint, ARootWithoutLatestIsNamed) {
  fs::remove(root_ / "LATEST");
  EXPECT_THAT(complaint(run_), AllOf(HasSubstr(root_.string() + ": expected checkpoints"),
                                     HasSubstr((folder_).string())));
}

/// What newest_whole finds, and what it tells.
std::pair<std::optional<std::int64_t>, std::string> found_in(const fs::path& root) {
  std::string told;
  const auto reader = newest_whole(root, [&](const std::string& text) { told += text; });
  return {reader ? std::optional(reader->step()) : std::nullopt, told};
}

TEST_F(DamagedCheckpoint, TheNewestWholeOneIsTakenWithAWord) {
  EXPECT_EQ(found_in(root_), std::pair(std::optional<std::int64_t>(2), std::string()));
  fs::remove(root_ / "LATEST");
  auto [step, told] = found_in(root_);
  EXPECT_EQ(step, 2);
  EXPECT_THAT(told, AllOf(HasSubstr("has no LATEST"), HasSubstr(folder_.string())));
  overwrite(folder_ / "model.safetensors", "half");
  EXPECT_EQ(found_in(root_).first, 1);
  overwrite(root_ / "LATEST", "step-000002\n");
  std::tie(step, told) = found_in(root_);
  EXPECT_EQ(step, 1);
  EXPECT_THAT(told, AllOf(HasSubstr("step-000002/model.safetensors: expected"),
                          HasSubstr((root_ / "step-000001").string())));
  fs::remove(root_ / "step-000001" / "state.json");
  EXPECT_THAT([&] { found_in(root_); },
              ThrowsMessage<Error>(HasSubstr("there is no whole checkpoint")));
  fs::remove(root_ / "LATEST");
  EXPECT_THAT([&] { found_in(root_); },
              ThrowsMessage<Error>(HasSubstr("there is no whole checkpoint")));
}

TEST_F(DamagedCheckpoint, OfACourseThatWasLeftIsTakenLast) {
  save_step(root_, 9);
  overwrite(root_ / "LATEST", "step-000002\n");
  fs::remove(folder_ / "state.json");
  EXPECT_EQ(found_in(root_).first, 1);
}

TEST_F(Checkpoint, NothingIsWholeWhereNothingIs) {
  EXPECT_EQ(found_in(root_).first, std::nullopt);
  fs::create_directories(root_ / "step-000002.partial");
  EXPECT_EQ(found_in(root_), std::pair(std::optional<std::int64_t>(), std::string()));
}

TEST_F(DamagedCheckpoint, WithoutAnotherWholeOneTheErrorSaysSo) {
  fs::remove(folder_ / "state.json");
  fs::remove(root_ / "step-000001" / "recipe.json");
  EXPECT_THAT(complaint(run_), AllOf(HasSubstr("step-000002/state.json"),
                                     HasSubstr("there is no whole checkpoint in " + root_.string()),
                                     HasSubstr("--overwrite")));
}

TEST_F(DamagedCheckpoint, AMissingFolderIsAClearError) {
  EXPECT_THAT(complaint(temp_.path() / "nowhere"), HasSubstr("there is no such folder"));
  EXPECT_THAT(complaint(temp_.path()), HasSubstr("it has no LATEST"));
}

TEST_F(Checkpoint, AReaderAlwaysFindsAWholeOneWhileARunGoesOn) {
  save_step(root_, 1, 1);
  std::atomic<bool> done = false;
  std::jthread run([&] {
    for (std::int64_t step = 2; step <= 60; ++step) save_step(root_, step - step % 2, 1);
    done = true;
  });
  std::int64_t newest = 0;
  while (!done) {
    const Reader reader(root_);
    expect_sample(reader, reader.step());
    EXPECT_GE(reader.step(), newest);
    newest = reader.step();
  }
}

TEST_F(Checkpoint, AKillAtAnyMomentLeavesTheLatestWhole) {
  Rng rng(20260309);
  const auto start = std::chrono::steady_clock::now();
  save_step(root_, 0, 2, 50'000);
  const auto one_save = std::chrono::steady_clock::now() - start;
  int interrupted = 0;
  for (int round = 0; round < 30; ++round) {
    const std::int64_t first = Reader(root_).step();
    int saved[2];
    ASSERT_EQ(::pipe(saved), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      // Each step twice: the second replaces the first.
      for (std::int64_t i = 2; ::write(saved[1], "x", 1) == 1; ++i)
        save_step(root_, first + i / 2, 2, 50'000);
      ::_exit(1);
    }
    for (std::uint64_t saves = 1 + rng.below(3); saves > 0; --saves) {
      char byte = 0;
      ASSERT_EQ(::read(saved[0], &byte, 1), 1);
    }
    std::this_thread::sleep_for(one_save * rng.uniform());
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(saved[0]);
    ::close(saved[1]);
    const Reader reader(root_);
    expect_sample(reader, reader.step());
    EXPECT_GE(reader.step(), first);
    for (const std::string& name : names_in(root_))
      interrupted += name.ends_with(".partial") ? 1 : 0;
  }
  EXPECT_GT(interrupted, 0);           // else this test tries nothing
  EXPECT_GT(Reader(root_).step(), 0);  // and saves do succeed
  save_step(root_, Reader(root_).step() + 1, 2);
  for (const std::string& name : names_in(root_)) EXPECT_FALSE(name.ends_with(".partial")) << name;
}

}  // namespace
}  // namespace xsa::checkpoint
