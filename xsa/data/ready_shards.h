// Token shards that are there already: a folder of xsa prepare, nanoGPT's train.bin and val.bin, or
// llm.c's *_train_*.bin and *_val_*.bin.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "xsa/data/dataset.h"

namespace xsa::data {

struct ReadyShards {
  std::filesystem::path manifest;  // of xsa prepare; empty where there is none
  std::vector<std::filesystem::path> train, validation;  // where there is none: sorted by name
  std::vector<std::string> passed_over{};  // names in their folder that are no token files
};

/// What `source`, a folder or a pattern of file names, names; nothing where it is text. Throws
/// UsageError for shards of which one side is missing, for a file among them that is none, and for
/// nanoGPT's data of characters.
std::optional<ReadyShards> find_ready_shards(const std::string& source);

/// Opens them, their hashes verified (verify.h, with `cache`). Without a manifest, the text's bytes
/// are counted by decoding the validation shards (train.bytes stays 0). Throws UsageError where the
/// manifest names another tokenizer; Error for what is wrong with a file.
Dataset open_ready_shards(const ReadyShards& shards, std::unique_ptr<text::Tokenizer> tokenizer,
                          const std::filesystem::path& cache);

/// The two splits that a folder's manifest describes, verified. Throws Error where a shard is not
/// as it says, or lacks; Json's exceptions for a manifest that is none.
struct Splits {
  Split train, validation;
};
Splits open_splits(const std::filesystem::path& folder, const Json& manifest,
                   std::int64_t vocabulary, const std::filesystem::path& cache);

}  // namespace xsa::data
