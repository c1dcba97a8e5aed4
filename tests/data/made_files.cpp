#include "tests/data/made_files.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/json/from_string.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>

#include "xsa/base/error.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

void done(const arrow::Status& status) { check(status.ok(), status.ToString()); }

template <class T>
T done(arrow::Result<T> result) {
  done(result.status());
  return std::move(result).ValueUnsafe();
}

std::string packed(std::string_view text, arrow::Compression::type kind) {
  const auto codec = done(arrow::util::Codec::Create(kind));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto size = static_cast<std::int64_t>(text.size());
  std::string out(static_cast<std::size_t>(codec->MaxCompressedLen(size, bytes)), '\0');
  const auto got = codec->Compress(size, bytes, static_cast<std::int64_t>(out.size()),
                                   reinterpret_cast<std::uint8_t*>(out.data()));
  out.resize(static_cast<std::size_t>(done(got)));
  return out;
}

template <class Builder, class Value>
std::shared_ptr<arrow::Array> array_of(const std::vector<std::optional<Value>>& values) {
  Builder builder;
  for (const auto& value : values) done(value ? builder.Append(*value) : builder.AppendNull());
  return done(builder.Finish());
}

void write_batches(arrow::ipc::RecordBatchWriter& writer, const arrow::RecordBatch& table,
                   std::int64_t rows) {
  for (std::int64_t begin = 0; begin < table.num_rows(); begin += rows)
    done(writer.WriteRecordBatch(*table.Slice(begin, rows)));
  done(writer.Close());
}

}  // namespace

std::string gzipped(std::string_view text) { return packed(text, arrow::Compression::GZIP); }
std::string zstandard(std::string_view text) { return packed(text, arrow::Compression::ZSTD); }

std::shared_ptr<arrow::RecordBatch> table_of(const Texts& texts, const std::string& column) {
  std::vector<std::optional<std::int64_t>> ids;
  for (std::size_t i = 0; i < texts.size(); ++i) ids.emplace_back(static_cast<std::int64_t>(i));
  return arrow::RecordBatch::Make(
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field(column, arrow::utf8())}),
      static_cast<std::int64_t>(texts.size()),
      {array_of<arrow::Int64Builder>(ids), array_of<arrow::StringBuilder>(texts)});
}

std::shared_ptr<arrow::RecordBatch> mixed_table() {
  using namespace arrow;  // NOLINT: names of types
  const auto choices = struct_({field("text", list(utf8())), field("label", list(utf8()))});
  const FieldVector fields = {field("flag", boolean()),
                              field("small", int8()),
                              field("large", uint64()),
                              field("real", float64()),
                              field("text", utf8()),
                              field("long_text", large_utf8()),
                              field("kind", dictionary(int32(), utf8())),
                              field("pair", fixed_size_list(int32(), 2)),
                              field("choices", choices),
                              field("day", date32())};
  const auto rows = done(json::ArrayFromJSONString(struct_(fields), R"([
    {"flag": true, "small": -7, "large": 18446744073709551615, "real": 0.5, "text": "a", "long_text": "b",
     "kind": "x", "pair": [1, 2], "choices": {"text": ["one", "two"], "label": ["A", "B"]}, "day": 0},
    {"flag": null, "small": null, "large": null, "real": null, "text": null, "long_text": null,
     "kind": null, "pair": null, "choices": null, "day": null},
    {"flag": false, "small": 1, "large": 2, "real": 1e300, "text": "", "long_text": "\u00e9", "kind": "y",
     "pair": [3, null], "choices": {"text": [], "label": null}, "day": 365}])"));
  return done(RecordBatch::FromStructArray(rows));
}

void write_parquet(const fs::path& path, const arrow::RecordBatch& table, const ParquetForm& form) {
  const auto whole = done(arrow::Table::FromRecordBatches({table.Slice(0)}));
  const auto file = done(arrow::io::FileOutputStream::Open(path.string()));
  parquet::WriterProperties::Builder properties;
  properties.compression(done(arrow::util::Codec::GetCompressionType(form.codec)));
  properties.data_pagesize(1000)->write_batch_size(8)->enable_page_checksum();
  if (!form.dictionary) properties.disable_dictionary();
  done(parquet::arrow::WriteTable(*whole, arrow::default_memory_pool(), file, form.group_rows,
                                  properties.build()));
  done(file->Close());
}

void write_arrow_stream(const fs::path& path, const arrow::RecordBatch& table, std::int64_t rows) {
  const auto file = done(arrow::io::FileOutputStream::Open(path.string()));
  write_batches(*done(arrow::ipc::MakeStreamWriter(file, table.schema())), table, rows);
  done(file->Close());
}

void write_arrow_file(const fs::path& path, const arrow::RecordBatch& table, std::int64_t rows) {
  const auto file = done(arrow::io::FileOutputStream::Open(path.string()));
  write_batches(*done(arrow::ipc::MakeFileWriter(file, table.schema())), table, rows);
  done(file->Close());
}

}  // namespace xsa::data
