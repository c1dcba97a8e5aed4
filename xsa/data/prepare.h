// Makes the folder of token shards that dataset.h opens:
//   manifest.json  train-00000.bin ...  validation-00000.bin ...
#pragma once

#include <filesystem>

#include "xsa/base/json.h"
#include "xsa/data/source.h"
#include "xsa/text/tokenizer.h"

namespace xsa::data {

inline constexpr const char* kManifestName = "manifest.json";

/// Whether prepare made this folder.
bool holds_shards(const std::filesystem::path& folder);

/// Writes the shards of `source` into `folder`, which exists and is empty, the manifest last. Every
/// document follows an end-of-text token; a shard holds at most `shard_tokens`. Shows a bar if it
/// takes over two seconds; throws Interrupted when asked to stop.
void prepare(const Source& source, const DataConfig& config, const text::Tokenizer& tokenizer,
             const std::filesystem::path& folder, std::int64_t shard_tokens = 100'000'000);

/// The manifest's rows of the source's files: {"path", "bytes", "modified_ns", "sha256", ...}.
/// Whether they are the source as it is now; by size and time of change, and where only times
/// differ by hash (`times_differ` is then set).
bool is_current(const Json& manifest, const Source& source, bool& times_differ);

}  // namespace xsa::data
