// The rows of Arrow's IPC files and streams: memory holds one record batch, as its writer made it.
#include <arrow/array.h>

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

/// That no offset leads out of the buffers. Strings pass as any bytes: UTF-8 is looked at later,
/// row by row.
arrow::Status validate(const arrow::Array& array) {
  const auto as = [&](const std::shared_ptr<arrow::DataType>& type) {
    ARROW_ASSIGN_OR_RAISE(const auto bytes, array.View(type));
    return bytes->ValidateFull();
  };
  switch (array.type_id()) {
    case arrow::Type::STRING:
      return as(arrow::binary());
    case arrow::Type::LARGE_STRING:
      return as(arrow::large_binary());
    case arrow::Type::STRING_VIEW:
      return as(arrow::binary_view());
    default:
      return array.ValidateFull();
  }
}

class ArrowReader final : public RowReader {
 public:
  ArrowReader(const fs::path& path, const std::string& column)
      : name_(path == kStandardInput ? "standard input" : path.string()),
        batches_(open_batches(path, FileKind::kArrow, 0)),
        column_(column) {
    const arrow::Schema& schema = *batches_.reader->schema();
    index_ = schema.GetFieldIndex(column);
    check_usage(index_ >= 0, name_, ": ", missing_column(column, schema.field_names()));
    const arrow::DataType& type = *schema.field(index_)->type();
    check_usage(holds_text(type), name_, ": column '", column, "': expected strings, got ",
                type.ToString(), "; choose a column of strings with --column");
  }

  bool next(Row& row) override {
    while (at_ == size_)
      if (!fill()) return false;
    row = Row{};
    if (array_->IsNull(at_) || !view_of(*array_, at_, row.text)) {
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
  std::shared_ptr<arrow::Array> array_;
  std::int64_t at_ = 0, size_ = 0, rows_done_ = 0;
};

}  // namespace

std::unique_ptr<RowReader> open_arrow(const fs::path& path, const RowForm& form) {
  return std::make_unique<ArrowReader>(path, form.column);
}

}  // namespace xsa::data
