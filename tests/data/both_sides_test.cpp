#include "xsa/data/both_sides.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/data/corpus_fixture.h"
#include "xsa/data/source.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

/// Made-up documents, none of which falls to the side that `wanted` does not name.
std::vector<std::string> documents(bool held_out, double fraction) {
  std::vector<std::string> texts;
  for (std::uint64_t seed = 1; texts.size() < 6; ++seed) {
    const std::string text = made_text(seed, 3000 + 1000 * texts.size());
    if ((place_of(text) < fraction) == held_out) texts.push_back(text);
  }
  return texts;
}

std::string lines_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += line_of(text);
  return lines;
}

TEST_F(Corpus, TheNearestDocumentGoesOverWhereAllFallToOneSide) {
  for (const bool held_out : {false, true}) {
    const double fraction = held_out ? 0.5 : 0.01;
    const std::vector<std::string> texts = documents(held_out, fraction);
    const auto nearer = [](const std::string& a, const std::string& b) {
      return place_of(a) < place_of(b);
    };
    const std::string nearest = held_out ? *std::max_element(texts.begin(), texts.end(), nearer)
                                         : *std::min_element(texts.begin(), texts.end(), nearer);
    std::string others;
    for (const std::string& text : texts)
      if (text != nearest) others += "|" + text;
    folder_.write("a.jsonl", lines_of(texts));
    for (const char* format : {"llmc", "nanogpt"}) {
      CorpusConfig how = config({"a.jsonl"}, cat(format, held_out));
      how.validation_fraction = fraction;
      how.shard_tokens = 10'000;
      how.format = format;
      const Json manifest = prepare_corpus(how);
      const std::string output = how.output.filename().string();
      const char* const full = held_out ? "validation" : "train";
      const char* const filled = held_out ? "train" : "validation";
      EXPECT_EQ(text_of(manifest, full, output), others);
      EXPECT_EQ(text_of(manifest, filled, output), "|" + nearest);
      EXPECT_EQ(manifest[full]["documents"], 5);
      EXPECT_EQ(manifest[full]["bytes"], others.size() - 5);
      EXPECT_EQ(manifest[full]["tokens"], others.size());
      EXPECT_EQ(manifest[filled]["documents"], 1);
      EXPECT_EQ(manifest[filled]["bytes"], nearest.size());
      EXPECT_THAT(manifest["held_out"].dump(), ::testing::HasSubstr("nearest"));
      EXPECT_EQ(prepare_corpus(how), manifest) << "it is finished";
    }
  }
}

TEST_F(Corpus, ADocumentAloneIsCutAsATextFileIsWhateverHoldsIt) {
  const std::string text = made_text(3, 50'000);
  folder_.write("a.txt", text);
  folder_.write("b.jsonl", line_of(text));
  folder_.write("c.txt.gz", gzipped(text));
  write_parquet(folder_ / "d.parquet", *table_of({text}));
  folder_.write("e/one.txt", text);
  for (const char* tokenizer : {"byte", "gpt2"}) {
    if (!xsa::testing::error_of([&] { text::make_tokenizer(tokenizer); }).empty()) continue;
    std::map<std::string, std::string> expected;
    for (const char* name : {"a.txt", "b.jsonl", "c.txt.gz", "d.parquet", "e"}) {
      CorpusConfig how = config({name}, cat(tokenizer, "-", name));
      how.tokenizer = tokenizer;
      how.validation_fraction = 0.1;
      const Json manifest = prepare_corpus(how);
      EXPECT_EQ(manifest["held_out"], "the end of the text");
      EXPECT_GT(manifest["validation"]["bytes"], 4000);
      const std::map<std::string, std::string> got = {
          {"train", manifest["train"].dump()}, {"validation", manifest["validation"].dump()}};
      if (expected.empty()) expected = got;
      EXPECT_EQ(got, expected) << name;
    }
  }
}

TEST_F(Corpus, ATextTooShortToCutIsLeftWhole) {
  folder_.write("a.jsonl", line_of("x"));
  CorpusConfig how = config({"a.jsonl"});
  how.validation_fraction = 0.01;
  const Json manifest = prepare_corpus(how);
  EXPECT_EQ(
      manifest["train"]["documents"].get<int>() + manifest["validation"]["documents"].get<int>(),
      1);
}

TEST_F(Corpus, AKillWhileTheSidesChangeIsContinuedToTheSameBytes) {
  folder_.write("a.jsonl", lines_of(documents(false, 0.01)));
  CorpusConfig how = config({"a.jsonl"});
  how.validation_fraction = 0.01;
  how.shard_tokens = 10'000;
  CorpusConfig all_in_train = how;
  all_in_train.output = folder_ / "before";
  all_in_train.validation_fraction = 0;
  const Json before = prepare_corpus(all_in_train);
  const Json manifest = prepare_corpus(how);
  const auto whole = bytes_in("out");

  // As a kill behind the first renaming leaves it.
  const Json state = {{"shards", before["train"]["shards"].size() - 1},
                      {"open_tokens", before["train"]["shards"].back()["tokens"]},
                      {"tokens", before["train"]["tokens"]},
                      {"bytes", before["train"]["bytes"]},
                      {"documents", 6},
                      {"sha256", Json::array()}};
  const Json none = {{"shards", 0}, {"open_tokens", 0}, {"tokens", 0},
                     {"bytes", 0},  {"documents", 0},   {"sha256", Json::array()}};
  const Json nearest = {{"place", 0.5}, {"begin", 0}, {"end", 0}, {"bytes", 0}};
  const fs::path aside = how.output / kSidesName;
  fs::create_directory(aside);
  for (const char* split : {"train", "validation"})
    for (const Json& shard : manifest[split]["shards"]) {
      const auto name = shard["file"].get<std::string>();
      if (name != "train-00000.bin") fs::rename(how.output / name, aside / name);
    }
  for (const Json& shard : before["train"]["shards"])
    if (const auto name = shard["file"].get<std::string>(); name != "train-00000.bin")
      fs::copy_file(all_in_train.output / name, how.output / name);
  write_json_file(how.output / "journal.json",
                  {{"version", 3},
                   {"settings", manifest["settings"]},
                   {"position", {{"file", 0}, {"row", 6}, {"mark", ""}}},
                   {"train", state},
                   {"validation", none},
                   {"nearest_trained", nearest},
                   {"nearest_held_out", nearest},
                   {"counts", manifest["counts"]},
                   {"sources", manifest["sources"]},
                   {"sides",
                    {{"train", manifest["train"]},
                     {"validation", manifest["validation"]},
                     {"held_out", manifest["held_out"]}}}});
  fs::remove(how.output / "manifest.json");
  prepare_corpus(how);
  EXPECT_EQ(bytes_in("out"), whole);
}

}  // namespace
}  // namespace xsa::data
