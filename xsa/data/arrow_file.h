// Arrow's and Parquet's files opened the same way, for the few .cpp files here that include Arrow.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/result.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "xsa/base/error.h"
#include "xsa/data/records.h"

namespace xsa::data {

[[noreturn]] void fail_to_read(const std::string& name, std::string_view reason);

/// The value, or an Error that names the file.
template <class T>
T unwrap(arrow::Result<T> result, const std::string& name) {
  if (!result.ok()) fail_to_read(name, result.status().message());
  return std::move(result).ValueUnsafe();
}

struct Batches {
  std::shared_ptr<arrow::RecordBatchReader> reader;  // ReadNext gives nullptr at the end
  std::function<std::int64_t()> raw_bytes;           // how far in the file
};

/// The record batches of a parquet file, an IPC file or an IPC stream, in turn. Memory: one batch
/// of an IPC file; `rows` rows and some pages of a parquet file.
Batches open_batches(const std::filesystem::path& path, FileKind kind, std::int64_t rows);

}  // namespace xsa::data
