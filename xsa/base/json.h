// JSON as the project reads and writes it: keys keep their order; a file is written aside, synced,
// renamed.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace xsa {

using Json = nlohmann::ordered_json;

/// Throws Error naming the file and the place of the first mistake.
Json read_json_file(const std::filesystem::path& path);
/// Pretty-printed, with a final newline. Numbers that are not finite are written as null.
void write_json_file(const std::filesystem::path& path, const Json& json);

}  // namespace xsa
