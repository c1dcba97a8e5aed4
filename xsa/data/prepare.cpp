#include "xsa/data/prepare.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "xsa/base/system.h"
#include "xsa/data/bar.h"
#include "xsa/data/file_rows.h"
#include "xsa/data/shard_writer.h"
#include "xsa/data/text_file.h"
#include "xsa/data/tokenize_files.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr char kStopped[] = "stopped while preparing data; the cache is as it was";

std::int64_t bytes_of(const Source& source) {
  std::int64_t bytes = 0;
  for (const SourceFile& file : source.files) bytes += file.bytes;
  return bytes;
}

Json row_of(const SourceFile& file, const std::string& hash) {
  return {{"path", file.name},
          {"bytes", file.bytes},
          {"modified_ns", file.modified_ns},
          {"sha256", hash}};
}

/// The documents of a source and their rows in the manifest. Empty files and copies of an earlier
/// document are left out: a copy on the other side would leak the held-out text.
struct Documents {
  std::vector<const SourceFile*> files;
  std::vector<std::size_t> rows;  // of each document
  Json table = Json::array();     // a row for every file
};

Documents read_documents(const Source& source, Bar& bar) {
  Documents documents;
  std::map<std::string, std::string> first_with;  // hash -> name
  for (const SourceFile& file : source.files) {
    const std::string hash = check_and_hash(file, [&](std::int64_t bytes) { bar.advance(bytes); });
    Json row = row_of(file, hash);
    const auto [found, is_new] = first_with.emplace(hash, file.name);
    if (file.bytes == 0)
      row["left_out"] = "empty";
    else if (!is_new)
      row["left_out"] = "copy of " + found->second;
    else {
      documents.files.push_back(&file);
      documents.rows.push_back(documents.table.size());
    }
    documents.table.push_back(std::move(row));
  }
  return documents;
}

/// Says of each document, in `documents.table` and in its Input, to which side it goes.
std::vector<Input> split(Documents& documents, double fraction) {
  std::vector<Input> inputs;
  for (const SourceFile* file : documents.files)
    inputs.push_back({.file = *file, .hash = false, .check_utf8 = false});  // checked above
  if (inputs.size() == 1) {
    const SourceFile& file = inputs[0].file;
    check(file.bytes >= 2, file.path.string(), ": expected at least 2 bytes of text, got ",
          file.bytes, "; use more text");
    inputs[0].form.cut = cut_of(file, fraction);
    Json& row = documents.table[documents.rows[0]];
    row["split"] = "train, then validation";
    row["validation_begins_at"] = *inputs[0].form.cut;
    return inputs;
  }
  std::vector<std::string> names;
  for (const Input& input : inputs) names.push_back(input.file.name);
  const std::vector<bool> held = held_out(names, fraction);
  for (std::size_t i = 0; i < held.size(); ++i) {
    inputs[i].held_out = held[i];
    documents.table[documents.rows[i]]["split"] = held[i] ? "validation" : "train";
  }
  return inputs;
}

}  // namespace

bool holds_shards(const fs::path& folder) {
  return fs::exists(folder / kManifestName) &&
         (fs::exists(folder / "train-00000.bin") || fs::exists(folder / "train.bin"));
}

void prepare(const Source& source, const DataConfig& config, const text::Tokenizer& tokenizer,
             const fs::path& folder, std::int64_t shard_tokens) {
  Bar bar("preparing data", 2 * bytes_of(source));  // hashed, then encoded
  Documents documents = read_documents(source, bar);
  FileRows rows(split(documents, config.validation_fraction), {}, {});
  SplitWriter train(folder, /*validation=*/false, ShardFormat::kLlmC, shard_tokens);
  SplitWriter validation(folder, /*validation=*/true, ShardFormat::kLlmC, shard_tokens);
  Progressed state;
  tokenize_files(
      rows, tokenizer, train, validation, state,
      {.workers = default_threads(), .stopped = kStopped, .bar = &bar, .bar_begin = bar.done()});
  for (const auto& [name, split] :
       {std::pair{"train", state.train}, std::pair{"validation", state.validation}})
    check(split.tokens >= 2, name, " text: expected at least one byte, got none; use more text");
  write_json_file(folder / kManifestName, {{"name", source.name},
                                           {"source", source.key},
                                           {"tokenizer", tokenizer.name()},
                                           {"vocabulary_size", tokenizer.vocabulary_size()},
                                           {"validation_fraction", config.validation_fraction},
                                           {"train", train.finish()},
                                           {"validation", validation.finish()},
                                           {"sources", documents.table}});
}

bool is_current(const Json& manifest, const Source& source, bool& times_differ) {
  const Json& rows = manifest.at("sources");
  if (rows.size() != source.files.size()) return false;
  times_differ = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SourceFile& file = source.files[i];
    if (rows[i].at("path") != file.name || rows[i].at("bytes") != file.bytes) return false;
    times_differ |= rows[i].at("modified_ns") != file.modified_ns;
  }
  if (!times_differ) return true;
  Bar bar("checking data", bytes_of(source));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].at("modified_ns") == source.files[i].modified_ns) continue;
    if (rows[i].at("sha256") !=
        check_and_hash(source.files[i], [&](std::int64_t bytes) { bar.advance(bytes); }))
      return false;
  }
  return true;
}

}  // namespace xsa::data
