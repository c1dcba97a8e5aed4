#include "xsa/data/prepare.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <span>

#include "xsa/base/hash.h"
#include "xsa/base/progress.h"
#include "xsa/base/signals.h"
#include "xsa/data/text_file.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr double kMiB = 1 << 20;

/// A bar that stays away from short work.
class Bar {
 public:
  Bar(std::string label, std::int64_t bytes) : label_(std::move(label)), total_(bytes) {}

  void advance(std::int64_t bytes) {
    if (const int signal = stop_signal())
      throw Interrupted(signal, cat("stopped while ", label_, "; the cache is as it was"));
    done_ += bytes;
    if (!bar_ && Clock::now() - start_ > std::chrono::seconds(2)) {
      bar_.emplace(label_, mebibytes(total_), "MiB");
      bar_->start_at(mebibytes(done_));
    }
    if (bar_) bar_->update(mebibytes(done_), "");
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::int64_t mebibytes(std::int64_t bytes) {
    return static_cast<std::int64_t>(static_cast<double>(bytes) / kMiB);
  }

  std::string label_;
  std::int64_t total_, done_ = 0;
  Clock::time_point start_ = Clock::now();
  std::optional<Progress> bar_;
};

std::int64_t bytes_of(const Source& source) {
  std::int64_t bytes = 0;
  for (const SourceFile& file : source.files) bytes += file.bytes;
  return bytes;
}

/// One split's documents on their way into shards.
class SplitWriter {
 public:
  SplitWriter(const fs::path& folder, std::string name, const text::Tokenizer& tokenizer,
              std::int64_t shard_tokens)
      : folder_(folder),
        name_(std::move(name)),
        tokenizer_(tokenizer),
        shard_tokens_(shard_tokens) {}

  void add_document(const SourceFile& file, std::int64_t begin, std::int64_t end, Bar& bar) {
    ids_.assign(1, tokenizer_.end_of_text());
    flush();
    // Byte tokens do not depend on where a document is cut into pieces. A tokenizer whose tokens
    // do must take its documents whole.
    for_each_piece(file, begin, end, [&](std::string_view piece) {
      ids_.clear();
      tokenizer_.encode(piece, ids_);
      flush();
      bar.advance(static_cast<std::int64_t>(piece.size()));
    });
    ++documents_;
    bytes_ += end - begin;
  }

  /// The manifest's entry. Throws Error where there is nothing to predict.
  Json finish() {
    close_shard();
    check(tokens_ >= 2, name_, " text: expected at least one byte, got none; use more text");
    return {{"documents", documents_}, {"bytes", bytes_}, {"tokens", tokens_}, {"shards", shards_}};
  }

 private:
  void flush() {
    for (std::span<const text::Token> rest = ids_; !rest.empty();) {
      if (!shard_) shard_.emplace(path_of_shard());
      const auto room = static_cast<std::size_t>(shard_tokens_ - shard_->size());
      const auto part = rest.first(std::min(room, rest.size()));
      shard_->add(part);
      rest = rest.subspan(part.size());
      if (shard_->size() == shard_tokens_) close_shard();
    }
  }

  void close_shard() {
    if (!shard_) return;
    shard_->finish();
    const fs::path path = path_of_shard();
    shards_.push_back({{"file", path.filename().string()},
                       {"tokens", shard_->size()},
                       {"sha256", sha256(MappedFile(path).bytes())}});
    tokens_ += shard_->size();
    shard_.reset();
  }

  fs::path path_of_shard() const {
    char number[16];
    std::snprintf(number, sizeof number, "-%05zu", shards_.size());
    return folder_ / (name_ + number + ".bin");
  }

  fs::path folder_;
  std::string name_;
  const text::Tokenizer& tokenizer_;
  std::int64_t shard_tokens_;
  std::vector<text::Token> ids_;
  std::optional<ShardWriter> shard_;
  Json shards_ = Json::array();
  std::int64_t documents_ = 0, bytes_ = 0, tokens_ = 0;
};

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

void split_by_document(Documents& documents, double fraction, SplitWriter& train,
                       SplitWriter& validation, Bar& bar) {
  std::vector<std::string> names;
  for (const SourceFile* file : documents.files) names.push_back(file->name);
  const std::vector<bool> held = held_out(names, fraction);
  for (std::size_t i = 0; i < held.size(); ++i) {
    const SourceFile& file = *documents.files[i];
    (held[i] ? validation : train).add_document(file, 0, file.bytes, bar);
    documents.table[documents.rows[i]]["split"] = held[i] ? "validation" : "train";
  }
}

void split_at_end(Documents& documents, double fraction, SplitWriter& train,
                  SplitWriter& validation, Bar& bar) {
  const SourceFile& file = *documents.files[0];
  check(file.bytes >= 2, file.path.string(), ": expected at least 2 bytes of text, got ",
        file.bytes, "; use more text");
  const std::int64_t cut = cut_of(file, fraction);
  train.add_document(file, 0, cut, bar);
  validation.add_document(file, cut, file.bytes, bar);
  Json& row = documents.table[documents.rows[0]];
  row["split"] = "train, then validation";
  row["validation_begins_at"] = cut;
}

}  // namespace

bool holds_shards(const fs::path& folder) {
  return fs::exists(folder / kManifestName) && fs::exists(folder / "train-00000.bin");
}

void prepare(const Source& source, const DataConfig& config, const text::Tokenizer& tokenizer,
             const fs::path& folder, std::int64_t shard_tokens) {
  Bar bar("preparing data", 2 * bytes_of(source));  // hashed, then encoded
  Documents documents = read_documents(source, bar);
  SplitWriter train(folder, "train", tokenizer, shard_tokens);
  SplitWriter validation(folder, "validation", tokenizer, shard_tokens);
  if (documents.files.size() == 1)
    split_at_end(documents, config.validation_fraction, train, validation, bar);
  else
    split_by_document(documents, config.validation_fraction, train, validation, bar);
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
