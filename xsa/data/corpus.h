// What `xsa prepare` does: files of any kind become a folder of token files,
//   manifest.json  train-00000.bin ...  validation-00000.bin ...   (llm.c's shards)
//   manifest.json  train.bin  val.bin                              (nanoGPT's)
// A broken run continues where it was: journal.json stands in the folder until the manifest does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/data/file_rows.h"

namespace xsa::data {

struct CorpusConfig {
  std::vector<std::string> sources;  // files, folders, globs; or "-" alone, standard input
  std::filesystem::path output;
  std::string type = "auto";  // text, jsonl, parquet, arrow
  std::string column = "text";
  std::string tokenizer = "gpt2";
  std::string format = "llmc";  // or nanogpt
  double validation_fraction = 0.01;
  std::int64_t shard_tokens = 100'000'000;
  std::string on_bad_row = "fail";  // or skip
  std::int64_t max_row_mib = 64;    // of a line of JSON
  std::int64_t threads = 0;         // 0: all cores
  std::int64_t save_mib = 64;       // of text between two places where a broken run may continue
  bool overwrite = false;
};

std::vector<std::string> corpus_types();
std::vector<std::string> corpus_formats();

/// The files that a config names, sorted by path.
struct CorpusFiles {
  std::vector<Input> inputs;
  std::vector<std::string> passed_over;  // files of its folders that are of another kind
  bool cut = false;                      // a single text, held out at its end
};
/// Throws UsageError for a source that is missing, empty or named twice.
CorpusFiles find_corpus(const CorpusConfig& config);

/// Makes the folder, or continues, or finds it made; returns the manifest. Throws UsageError where
/// the output holds something else, or was begun by another command or from other sources; and what
/// tokenize_files throws. docs/data.md tells the rules.
Json prepare_corpus(const CorpusConfig& config);

}  // namespace xsa::data
