// JSON as the project reads and writes it: keys keep their order; a file is written aside, synced,
// renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace xsa {

using Json = nlohmann::ordered_json;

/// Throws Error naming the file and the place of the first mistake.
Json read_json_file(const std::filesystem::path& path);
/// A count, 0 or more, in an object that was parsed. Throws Json's exceptions for anything else.
std::int64_t count_in(const Json& object, const char* key);
/// Pretty-printed, with a final newline. Numbers that are not finite are written as null.
void write_json_file(const std::filesystem::path& path, const Json& json);

}  // namespace xsa
