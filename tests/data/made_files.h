// Small files of every kind that the readers take, written by Arrow.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arrow {
class Array;
class RecordBatch;
}  // namespace arrow

namespace xsa::data {

std::string gzipped(std::string_view text);
std::string zstandard(std::string_view text);

using Texts = std::vector<std::optional<std::string>>;

/// Two columns: `id` (int64: 0, 1, ...) and `column`, strings.
std::shared_ptr<arrow::RecordBatch> table_of(const Texts& texts,
                                             const std::string& column = "text");
/// One column of each kind that needs a rule: numbers, strings, lists, structs, nulls, ...; 3 rows.
std::shared_ptr<arrow::RecordBatch> mixed_table();

struct ParquetForm {
  std::int64_t group_rows = 1 << 20;
  bool dictionary = true;
  std::string codec = "zstd";
};
void write_parquet(const std::filesystem::path& path, const arrow::RecordBatch& table,
                   const ParquetForm& form = {});
/// `rows` rows a batch.
void write_arrow_stream(const std::filesystem::path& path, const arrow::RecordBatch& table,
                        std::int64_t rows = 1000);
void write_arrow_file(const std::filesystem::path& path, const arrow::RecordBatch& table,
                      std::int64_t rows = 1000);

}  // namespace xsa::data
