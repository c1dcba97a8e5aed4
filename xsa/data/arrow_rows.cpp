// The rows of Arrow's IPC files and streams: memory holds one record batch, as its writer made it.
#include <arrow/array.h>

#include <optional>
#include <utility>
#include <vector>

#include "xsa/data/arrow_file.h"
#include "xsa/data/byte_stream.h"
#include "xsa/data/row_reader.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

/// The string at a place that is not null, of any of Arrow's layouts; false: its dictionary says
/// null.
bool view_of(const arrow::Array& array, std::int64_t index, std::string_view& text) {
  switch (array.type_id()) {
    case arrow::Type::STRING:
      text = static_cast<const arrow::StringArray&>(array).GetView(index);
      return true;
    case arrow::Type::LARGE_STRING:
      text = static_cast<const arrow::LargeStringArray&>(array).GetView(index);
      return true;
    case arrow::Type::STRING_VIEW:
      text = static_cast<const arrow::StringViewArray&>(array).GetView(index);
      return true;
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      const std::int64_t value = coded.GetValueIndex(index);
      return !coded.dictionary()->IsNull(value) && view_of(*coded.dictionary(), value, text);
    }
    default:
      return false;
  }
}

bool is_list(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::FIXED_SIZE_LIST;
}

bool holds_text(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return true;
    case arrow::Type::DICTIONARY:
      return holds_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
    default:
      return false;
  }
}

/// Where the texts of a table lie: a column, then a field in each struct on the way. Lists are
/// passed through: their elements lie at the same place.
struct TextPath {
  std::string name;  // "messages.content"
  std::vector<int> fields;
};

void add_paths(const arrow::DataType& type, const TextPath& here, std::vector<TextPath>& paths) {
  if (holds_text(type)) paths.push_back(here);
  if (type.id() == arrow::Type::STRUCT) {
    for (int i = 0; i < type.num_fields(); ++i) {
      TextPath there{here.name + "." + type.field(i)->name(), here.fields};
      there.fields.push_back(i);
      add_paths(*type.field(i)->type(), there, paths);
    }
  } else if (is_list(type)) {
    add_paths(*type.field(0)->type(), here, paths);
  }
}

std::vector<TextPath> text_paths(const arrow::Schema& schema) {
  std::vector<TextPath> paths;
  for (int i = 0; i < schema.num_fields(); ++i)
    add_paths(*schema.field(i)->type(), {schema.field(i)->name(), {i}}, paths);
  return paths;
}

/// Joins the strings at a place of an array by line breaks.
class Join {
 public:
  explicit Join(const TextPath& path) : fields_(path.fields) {}

  /// False where the text is null; nulls within a list are passed over.
  bool at(const arrow::Array& column, std::int64_t index, std::string& text) {
    text.clear();
    any_ = false;
    return add(column, index, 1, text);
  }

 private:
  bool add(const arrow::Array& array, std::int64_t index, std::size_t depth, std::string& text) {
    if (array.IsNull(index)) return false;
    switch (array.type_id()) {
      case arrow::Type::STRUCT:
        return add(*static_cast<const arrow::StructArray&>(array).field(fields_[depth]), index,
                   depth + 1, text);
      case arrow::Type::LIST:
        return add_list(static_cast<const arrow::ListArray&>(array), index, depth, text);
      case arrow::Type::LARGE_LIST:
        return add_list(static_cast<const arrow::LargeListArray&>(array), index, depth, text);
      case arrow::Type::FIXED_SIZE_LIST:
        return add_list(static_cast<const arrow::FixedSizeListArray&>(array), index, depth, text);
      default:
        break;
    }
    std::string_view string;
    if (!view_of(array, index, string)) return false;
    if (std::exchange(any_, true)) text += '\n';
    text += string;
    return true;
  }

  template <class List>
  bool add_list(const List& list, std::int64_t index, std::size_t depth, std::string& text) {
    const auto begin = static_cast<std::int64_t>(list.value_offset(index));
    for (std::int64_t i = begin; i < begin + list.value_length(index); ++i)
      add(*list.values(), i, depth, text);
    return true;
  }

  std::vector<int> fields_;
  bool any_ = false;
};

/// The same layout, with bytes for strings.
std::shared_ptr<arrow::DataType> without_strings(const std::shared_ptr<arrow::DataType>& type) {
  const auto inner = [&](int i) {
    return type->field(i)->WithType(without_strings(type->field(i)->type()));
  };
  switch (type->id()) {
    case arrow::Type::STRING:
      return arrow::binary();
    case arrow::Type::LARGE_STRING:
      return arrow::large_binary();
    case arrow::Type::STRING_VIEW:
      return arrow::binary_view();
    case arrow::Type::LIST:
      return arrow::list(inner(0));
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(inner(0));
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          inner(0), static_cast<const arrow::FixedSizeListType&>(*type).list_size());
    case arrow::Type::STRUCT: {
      arrow::FieldVector fields;
      for (int i = 0; i < type->num_fields(); ++i) fields.push_back(inner(i));
      return arrow::struct_(fields);
    }
    default:
      return type;
  }
}

/// That no offset leads out of the buffers. Strings pass as any bytes: UTF-8 is looked at later,
/// row by row.
arrow::Status validate(const arrow::Array& array) {
  const auto type = without_strings(array.type());
  if (type->Equals(*array.type())) return array.ValidateFull();
  ARROW_ASSIGN_OR_RAISE(const auto bytes, array.View(type));
  return bytes->ValidateFull();
}

class ArrowReader final : public RowReader {
 public:
  ArrowReader(const fs::path& path, const std::string& column)
      : name_(path == kStandardInput ? "standard input" : path.string()),
        batches_(open_batches(path, FileKind::kArrow, 0)),
        column_(column) {
    const arrow::Schema& schema = *batches_.reader->schema();
    std::vector<std::string> texts;
    std::optional<TextPath> found;
    for (const TextPath& text : text_paths(schema)) {
      texts.push_back(text.name);
      if (text.name == column) found = text;
    }
    index_ = schema.GetFieldIndex(column);
    check_usage(found || index_ >= 0, name_, ": ", missing_column(column, texts));
    check_usage(found.has_value(), name_, ": column '", column, "': expected strings, got ",
                index_ < 0 ? "" : schema.field(index_)->type()->ToString(),
                "; choose a column of strings with --column");
    index_ = found->fields.front();
    if (!holds_text(*schema.field(index_)->type())) join_.emplace(*found);
  }

  bool next(Row& row) override {
    while (at_ == size_)
      if (!fill()) return false;
    row = Row{};
    const bool is_there = join_ ? join_->at(*array_, at_, joined_)
                                : !array_->IsNull(at_) && view_of(*array_, at_, row.text);
    if (join_) row.text = joined_;
    if (!is_there) {
      row.fault = Fault::kNoText;
      row.reason = cat("'", column_, "' is null");
    }
    ++at_, ++rows_done_;
    return true;
  }

  void skip(std::int64_t rows) override {
    while (rows > 0) {
      if (at_ == size_) check(fill(), name_, ": it has become shorter");
      const std::int64_t here = std::min(rows, size_ - at_);
      at_ += here, rows_done_ += here, rows -= here;
    }
  }

  std::int64_t raw_bytes() const override { return batches_.raw_bytes(); }

 private:
  bool fill() {
    std::shared_ptr<arrow::RecordBatch> batch;
    arrow::Status status = batches_.reader->ReadNext(&batch);
    if (status.ok() && batch) status = validate(*batch->column(index_));
    if (!status.ok()) fail_to_read(cat(name_, ": row ", rows_done_, " or after"), status.message());
    if (!batch) return false;
    array_ = batch->column(index_);
    size_ = array_->length();
    at_ = 0;
    return true;
  }

  std::string name_;
  Batches batches_;
  std::string column_;
  int index_ = -1;
  std::optional<Join> join_;  // of a column that is not strings itself
  std::string joined_;
  std::shared_ptr<arrow::Array> array_;
  std::int64_t at_ = 0, size_ = 0, rows_done_ = 0;
};

}  // namespace

std::unique_ptr<RowReader> open_arrow(const fs::path& path, const RowForm& form) {
  return std::make_unique<ArrowReader>(path, form.column);
}

}  // namespace xsa::data
