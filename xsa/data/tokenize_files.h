// Rows -> documents -> tokens -> shards: batches of documents are encoded by several workers and
// written in their order, so that the result depends on the rows alone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "xsa/base/json.h"
#include "xsa/data/bar.h"
#include "xsa/data/file_rows.h"
#include "xsa/data/shard_writer.h"
#include "xsa/text/tokenizer.h"

namespace xsa::data {

/// What became of the rows.
struct Counts {
  std::int64_t rows = 0, empty_documents = 0;
  std::array<std::int64_t, kFaultNames.size()> bad{};  // by Fault
  Json examples = Json::array();                       // of bad rows, the first few
  std::int64_t bad_rows() const;
};
Json to_json(const Counts& counts);
Counts counts_of(const Json& json);

/// The document of a side whose place (source.h) is nearest to the other side.
struct Nearest {
  double place = -1;                // -1: there is none
  std::int64_t begin = 0, end = 0;  // its tokens on that side
  std::int64_t bytes = 0;
};
Json to_json(const Nearest& nearest);
Nearest nearest_of(const Json& json);

/// Everything up to `position` is in the splits.
struct Progressed {
  Position position;
  SplitState train, validation;
  Counts counts;
  Nearest nearest_trained{}, nearest_held_out{};  // where documents fall by their hash
};

struct TokenizeOptions {
  std::int64_t workers = 1;
  double validation_fraction = 0;
  bool skip_bad_rows = false;
  std::int64_t commit_bytes = 64 << 20;  // of text between two calls of commit
  /// The splits are on the disk as `state` says: where a broken run may continue. May be empty.
  std::function<void(const Progressed& state)> commit{};
  std::string stopped = "stopped";  // what Interrupted says
  Bar* bar = nullptr;
  std::int64_t bar_begin = 0;
};

/// Writes the documents of `rows` behind `state`, which it leaves at the end. A document is held
/// out if place_of its first MiB is below the fraction, where its Input does not say. An
/// end-of-text token stands before each document; empty ones are left out. Throws Error for a bad
/// row unless they are skipped, for what the readers throw, and for an id beyond the vocabulary or
/// 65535; Interrupted when asked to stop. In all of these cases what came before is committed.
///
/// Memory: up to 4 + 4 workers batches of a MiB of text and its tokens. A document is cut where the
/// tokenizer allows; one that has no such place within 16 MiB is at fault (kTooLong).
void tokenize_files(FileRows& rows, const text::Tokenizer& tokenizer, SplitWriter& train,
                    SplitWriter& validation, Progressed& state, const TokenizeOptions& options);

}  // namespace xsa::data
