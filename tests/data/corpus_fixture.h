// A folder with sources, and what a corpus that was made of them holds.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/data/made_files.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/base/hash.h"
#include "xsa/base/rng.h"
#include "xsa/data/corpus.h"
#include "xsa/data/shard.h"
#include "xsa/data/verify.h"

namespace xsa::data {

/// Sentences of made-up words, no two texts alike.
inline std::string made_text(std::uint64_t seed, std::size_t bytes) {
  Rng rng(seed);
  std::string text;
  while (text.size() < bytes) {
    for (std::size_t letters = 1 + rng.below(9); letters > 0; --letters)
      text += static_cast<char>('a' + rng.below(26));
    text += rng.below(12) == 0 ? ".\n" : " ";
  }
  text.resize(bytes);
  return text;
}

inline std::string line_of(const std::string& text) { return Json({{"text", text}}).dump() + "\n"; }

class Corpus : public ::testing::Test {
 protected:
  CorpusConfig config(std::vector<std::string> sources, const std::string& output = "out") {
    CorpusConfig made;
    for (std::string& source : sources) source = (folder_ / source).string();
    made.sources = std::move(sources);
    made.output = folder_ / output;
    made.tokenizer = "byte";
    made.validation_fraction = 0;
    made.threads = 2;
    return made;
  }

  /// The documents of a split, as the tokens say: "|one|two".
  std::string text_of(const Json& manifest, const char* split, const std::string& output = "out") {
    const bool raw = manifest.at("format") == "nanogpt";
    std::string text;
    for (const Json& entry : manifest.at(split).at("shards")) {
      const Shard shard(folder_ / output / entry.at("file").get<std::string>(),
                        raw ? ShardFormat::kNanoGpt : ShardFormat::kLlmC);
      EXPECT_EQ(shard.size(), entry.at("tokens").get<std::int64_t>());
      std::vector<std::uint16_t> ids(static_cast<std::size_t>(shard.size()));
      shard.read(0, ids);
      for (const std::uint16_t id : ids) text += id == 256 ? '|' : static_cast<char>(id);
    }
    return text;
  }

  std::string prepared(const CorpusConfig& how) {
    const Json manifest = prepare_corpus(how);
    EXPECT_FALSE(std::filesystem::exists(how.output / "journal.json"));
    return text_of(manifest, "train", how.output.filename().string());
  }

  std::string refusal(const CorpusConfig& how) {
    return xsa::testing::error_of<UsageError>([&] { prepare_corpus(how); });
  }
  std::string failure(const CorpusConfig& how) {
    return xsa::testing::error_of([&] { prepare_corpus(how); });
  }

  /// Every file of a folder, but what a verification remembers, with the hash of its bytes.
  std::map<std::string, std::string> bytes_in(const std::string& output) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / output)) {
      const std::string name = entry.path().filename().string();
      if (name == kVerifiedName) continue;
      std::string bytes = read_file(entry.path());
      if (name == "manifest.json") {  // its name is the folder's
        Json manifest = Json::parse(bytes);
        manifest.erase("name");
        bytes = manifest.dump();
      }
      files[name] = sha256(std::as_bytes(std::span(bytes)));
    }
    return files;
  }

  /// The same, with their bytes.
  std::map<std::string, std::string> files_in(const std::string& output) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / output))
      if (entry.path().filename() != kVerifiedName)
        files[entry.path().filename().string()] = read_file(entry.path());
    return files;
  }

  /// Three JSON lines files of many documents, short, empty and longer than a batch.
  std::vector<std::string> many_documents() {
    const std::vector<std::string> names = {"many-499.jsonl", "many-999.jsonl",
                                            "many-1499.jsonl.zst"};
    if (std::filesystem::exists(folder_ / names[0])) return names;
    std::string lines;
    for (std::uint64_t i = 0; i < 1500; ++i) {
      const std::size_t bytes = i % 500 == 7 ? 3'000'000 : i % 50 == 3 ? 0 : i * 13 % 4000;
      lines += line_of(made_text(i, bytes));
      if (i % 500 != 499) continue;
      folder_.write(names[i / 500], i < 1000 ? lines : zstandard(lines));
      lines.clear();
    }
    return names;
  }

  CorpusConfig many(const std::string& output) {
    CorpusConfig how = config(many_documents(), output);
    how.validation_fraction = 0.1;
    how.shard_tokens = 900'000;
    how.save_mib = 1;
    return how;
  }

  xsa::testing::TempFolder folder_;
};

}  // namespace xsa::data
