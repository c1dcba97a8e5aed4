// Files of records: JSON lines, parquet, Arrow's IPC formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "xsa/base/json.h"

namespace xsa::data {

enum class FileKind { kText, kJsonLines, kParquet, kArrow };

/// By the name's ending, one of .gz, .zst and .zstd aside: .jsonl .ndjson .json; .parquet .pq;
/// .arrow .ipc .feather; anything else is text.
FileKind kind_of(const std::filesystem::path& path);

/// Whether a file's name says that it is a table of values between commas or tabs (.csv, .tsv, also
/// packed), which is no prose.
bool is_table(const std::filesystem::path& path);

/// Whether for_each_record reads it.
bool is_record_file(const std::filesystem::path& path);

/// Calls take(index, record) for each record of a file, every column as JSON (structs are objects,
/// dictionaries their values, times and decimals strings). JSON lines may be packed by gzip or
/// zstd; blank lines are no records. Arrow: a stream or a file. Throws Error naming file, row and
/// reason; what `take` throws passes through.
void for_each_record(const std::filesystem::path& path,
                     const std::function<void(std::int64_t index, Json&& record)>& take);

}  // namespace xsa::data
