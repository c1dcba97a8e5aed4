#include "xsa/data/records.h"

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type_traits.h>
#include <arrow/visit_array_inline.h>

#include <algorithm>
#include <limits>

#include "xsa/base/parse_json.h"
#include "xsa/data/arrow_file.h"
#include "xsa/data/byte_stream.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBatchRows = 256;
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 30;

Json value_of(const arrow::Array& array, std::int64_t index);

Json list_of(const arrow::Array& values, std::int64_t begin, std::int64_t end) {
  Json list = Json::array();
  for (std::int64_t i = begin; i < end; ++i) list.push_back(value_of(values, i));
  return list;
}

/// Turns one place of an array that is not null there into JSON.
struct ValueOf {
  std::int64_t index;
  Json json;

  template <class Array>
  arrow::Status Visit(const Array& array) {
    using Type = typename Array::TypeClass;
    if constexpr (arrow::is_boolean_type<Type>::value || arrow::is_integer_type<Type>::value ||
                  std::is_same_v<Type, arrow::FloatType> ||
                  std::is_same_v<Type, arrow::DoubleType>) {
      json = array.Value(index);
    } else if constexpr (arrow::is_base_binary_type<Type>::value ||
                         arrow::is_binary_view_like_type<Type>::value) {
      json = std::string(array.GetView(index));
    } else if constexpr (arrow::is_var_length_list_type<Type>::value ||
                         std::is_same_v<Type, arrow::FixedSizeListType>) {
      const auto begin = static_cast<std::int64_t>(array.value_offset(index));
      json = list_of(*array.values(), begin, begin + array.value_length(index));
    } else if constexpr (std::is_same_v<Type, arrow::StructType>) {
      json = Json::object();
      for (int i = 0; i < array.num_fields(); ++i)
        json[array.type()->field(i)->name()] = value_of(*array.field(i), index);
    } else if constexpr (std::is_same_v<Type, arrow::DictionaryType>) {
      json = value_of(*array.dictionary(), array.GetValueIndex(index));
    } else {
      ARROW_ASSIGN_OR_RAISE(const auto scalar, array.GetScalar(index));
      json = scalar->ToString();
    }
    return arrow::Status::OK();
  }
};

Json value_of(const arrow::Array& array, std::int64_t index) {
  if (array.IsNull(index)) return nullptr;
  ValueOf visitor{index, {}};
  const arrow::Status status = arrow::VisitArrayInline(array, &visitor);
  check(status.ok(), status.message());
  return std::move(visitor.json);
}

void for_each_arrow_record(const fs::path& path,
                           const std::function<void(std::int64_t, Json&&)>& take) {
  const std::string name = path.string();
  const auto batches = open_batches(path, kind_of(path), kBatchRows).reader;
  std::int64_t row = 0;
  for (std::shared_ptr<arrow::RecordBatch> batch;;) {
    arrow::Status status = batches->ReadNext(&batch);
    if (status.ok() && batch) status = batch->ValidateFull();
    if (!status.ok()) fail_to_read(cat(name, ": row ", row, " or after"), status.message());
    if (!batch) return;
    for (std::int64_t i = 0; i < batch->num_rows(); ++i, ++row) {
      Json record = Json::object();
      for (int column = 0; column < batch->num_columns(); ++column)
        record[batch->column_name(column)] = value_of(*batch->column(column), i);
      take(row, std::move(record));
    }
  }
}

/// Python writes NaN, Infinity and -Infinity, for which JSON has no word: null in their place.
std::string with_null_for_nan(std::string_view line) {
  std::string text;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto skip = [&](std::string_view word) {
      if (in_string || !line.substr(i).starts_with(word)) return false;
      text += "null";
      i += word.size() - 1;
      return true;
    };
    if (skip("NaN") || skip("Infinity") || skip("-Infinity")) continue;
    text += line[i];
    if (line[i] == '"') in_string = !in_string;
    if (in_string && line[i] == '\\' && i + 1 < line.size()) text += line[++i];
  }
  return text;
}

void for_each_line(const fs::path& path, const std::function<void(std::int64_t, Json&&)>& take) {
  ByteStream stream(path);
  LineReader lines(stream, kMaxLineBytes);
  std::string_view line;
  bool too_long = false;
  std::int64_t row = 0;
  for (std::int64_t number = 1; lines.next(line, too_long); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos && !too_long) continue;
    const std::string place = cat(path.string(), ": row ", row, " (line ", number, "): ");
    check(!too_long, place, "longer than ", kMaxLineBytes >> 20, " MiB");
    check(!line.substr(line.find_first_not_of(" \t\r")).starts_with('['), place,
          "expected a JSON object in each line, got array; `jq -c '.[]'` makes lines of it");
    Json record;
    try {
      record = parse_json(with_null_for_nan(line));
    } catch (const Error& error) {
      throw Error(place + error.what());
    }
    check(record.is_object(), place, "expected a JSON object in each line, got ",
          record.type_name());
    take(row++, std::move(record));
  }
}

bool among(const fs::path& ending, std::initializer_list<const char*> endings) {
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

/// The ending, of a packed file that of what is in it; and whether it is packed.
std::pair<fs::path, bool> ending_of(const fs::path& path) {
  const bool packed = among(path.extension(), {".gz", ".zst", ".zstd"});
  return {packed ? path.stem().extension() : path.extension(), packed};
}

}  // namespace

FileKind kind_of(const fs::path& path) {
  const auto [ending, packed] = ending_of(path);
  if (among(ending, {".jsonl", ".ndjson", ".json"})) return FileKind::kJsonLines;
  if (packed) return FileKind::kText;
  if (among(ending, {".parquet", ".pq"})) return FileKind::kParquet;
  if (among(ending, {".arrow", ".ipc", ".feather"})) return FileKind::kArrow;
  return FileKind::kText;
}

bool is_table(const fs::path& path) { return among(ending_of(path).first, {".csv", ".tsv"}); }

bool is_record_file(const fs::path& path) { return kind_of(path) != FileKind::kText; }

void for_each_record(const fs::path& path, const std::function<void(std::int64_t, Json&&)>& take) {
  switch (kind_of(path)) {
    case FileKind::kJsonLines:
      return for_each_line(path, take);
    case FileKind::kParquet:
    case FileKind::kArrow:
      return for_each_arrow_record(path, take);
    case FileKind::kText:
      break;
  }
  throw Error(cat(path.string(),
                  ": expected a file of records: .jsonl, .ndjson or .json (also .gz, ",
                  ".zst), .parquet, .arrow"));
}

}  // namespace xsa::data
