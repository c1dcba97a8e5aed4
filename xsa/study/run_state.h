// How far the run of a folder is, for whoever waits for its process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "xsa/base/json.h"

namespace xsa::study {

struct Newest {
  std::int64_t step = 0;
  double loss = 0;
};

/// From the end of its metrics.jsonl; nothing where no step is told there.
std::optional<Newest> newest_of(const std::filesystem::path& folder);

/// What a finished run says of itself; nothing where it has not ended. Throws Error where its
/// summary.json is no finished run's.
std::optional<Json> summary_of(const std::filesystem::path& folder);

}  // namespace xsa::study
