// Shards held to their hashes before anything is read of them, at a cost that is felt once: what
// was found is remembered beside them.
#pragma once

#include <filesystem>
#include <vector>

#include "xsa/data/shard.h"

namespace xsa::data {

/// Hidden, so that nobody takes it for data.
inline constexpr const char* kVerifiedName = ".verified.json";

/// Hashes the streams' shards on all cores, with a bar where that takes over two seconds, but for
/// those that kVerifiedName beside them, or in `cache` where their folder may not be written to,
/// knows in the state that they are in. Throws as Shard::verify.
void verify_shards(const std::vector<const TokenStream*>& streams,
                   const std::filesystem::path& cache);

}  // namespace xsa::data
