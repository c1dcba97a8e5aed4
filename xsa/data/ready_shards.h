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
};

/// What `source`, a folder or a pattern of file names, names; nothing where it is text. Throws
/// UsageError for shards of which one side is missing, and for nanoGPT's data of characters.
std::optional<ReadyShards> find_ready_shards(const std::string& source);

/// Opens them. Without a manifest, the text's bytes are counted by decoding the validation shards
/// (train.bytes stays 0), and shards are told apart by samples of their content. Throws UsageError
/// where the manifest names another tokenizer; Error for what is wrong with a file.
Dataset open_ready_shards(const ReadyShards& shards, std::unique_ptr<text::Tokenizer> tokenizer);

/// The split "train" or "validation" that a folder's manifest describes. Throws Error where a shard
/// is not as it says, or lacks; Json's exceptions for a manifest that is none.
Split open_split(const std::filesystem::path& folder, const Json& manifest, const char* split,
                 std::int64_t vocabulary);

}  // namespace xsa::data
