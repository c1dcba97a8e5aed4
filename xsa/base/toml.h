// Recipes are TOML; from here on they are JSON tables, which configurations read with apply_json.
#pragma once

#include <filesystem>

#include "xsa/base/json.h"

namespace xsa {

/// Throws UsageError naming file, line and column of the first mistake, or Error if the file cannot
/// be read.
Json read_toml_file(const std::filesystem::path& path);

}  // namespace xsa
