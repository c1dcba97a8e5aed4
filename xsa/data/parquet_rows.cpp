// Parquet by its low-level reader: memory holds a page (and the dictionary) of one column, whatever
// the size of the row groups.
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include <utility>
#include <vector>

#include "xsa/data/arrow_file.h"
#include "xsa/data/file_head.h"
#include "xsa/data/row_reader.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBatchRows = 64;
constexpr std::int64_t kBufferBytes = 1 << 20;

bool is_text(const parquet::ColumnDescriptor& column) {
  if (column.physical_type() != parquet::Type::BYTE_ARRAY) return false;
  const auto& logical = column.logical_type();
  const auto& converted = column.converted_type();
  return !logical || logical->is_string() || logical->is_JSON() || logical->is_enum() ||
         (logical->is_none() && converted == parquet::ConvertedType::NONE);
}

bool is_list(const parquet::schema::Node& node) {
  return (node.logical_type() && node.logical_type()->is_list()) ||
         node.converted_type() == parquet::ConvertedType::LIST;
}

/// A column as a user names it: "messages.content" for messages.list.element.content. Parquet wraps
/// a list's elements in one or two nodes, whose names are the writer's.
std::string path_of(const parquet::ColumnDescriptor& column) {
  std::vector<const parquet::schema::Node*> nodes;
  for (const auto* node = column.schema_node().get(); node->parent(); node = node->parent())
    nodes.push_back(node);
  std::string path;
  int wrapping = 0;  // nodes to come that are of a list
  for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
    const parquet::schema::Node& node = **at;
    if (wrapping > 0) {
      const bool is_element =
          node.is_primitive() ||
          static_cast<const parquet::schema::GroupNode&>(node).field_count() != 1 ||
          node.name() == "array" || node.name().ends_with("_tuple");
      wrapping = wrapping == 2 && !is_element ? 1 : 0;
    } else {
      path += (path.empty() ? "" : ".") + node.name();
    }
    if (wrapping == 0 && is_list(node)) wrapping = 2;
  }
  return path;
}

/// The definition level of a row whose outermost list is there but empty.
std::int16_t empty_list_level(const parquet::ColumnDescriptor& column) {
  std::vector<const parquet::schema::Node*> nodes;
  for (const auto* node = column.schema_node().get(); node->parent(); node = node->parent())
    nodes.push_back(node);
  std::int16_t level = 0;
  for (auto at = nodes.rbegin(); at != nodes.rend() && !(*at)->is_repeated(); ++at)
    if ((*at)->is_optional()) ++level;
  return level;
}

class ParquetReader final : public RowReader {
 public:
  ParquetReader(const fs::path& path, const std::string& column)
      : name_(path.string()), file_bytes_(static_cast<std::int64_t>(fs::file_size(path))) {
    refuse_lfs_pointer(path);
    guard([&] {
      parquet::ReaderProperties properties;
      properties.enable_buffered_stream();
      properties.set_buffer_size(kBufferBytes);
      properties.set_page_checksum_verification(true);
      file_ = parquet::ParquetFileReader::OpenFile(name_, /*memory_map=*/false, properties);
      rows_ = file_->metadata()->num_rows();
      find(*file_->metadata()->schema(), column);
    });
  }

  bool next(Row& row) override {
    if (at_ == levels_.size() && !fill()) return false;
    row = Row{};
    ++rows_done_;
    if (is_list_) return next_list(row);
    if (levels_[at_++] < max_level_) {
      row.fault = Fault::kNoText;
      row.reason = cat("'", column_name_, "' is null");
    } else {
      const parquet::ByteArray& value = values_[value_at_++];
      row.text = {reinterpret_cast<const char*>(value.ptr), value.len};
    }
    return true;
  }

  void skip(std::int64_t rows) override {
    if (is_list_) return RowReader::skip(rows);
    guard([&] {
      rows_done_ += rows;
      while (rows > 0) {
        check(next_group(), name_, ": it has become shorter");
        const std::int64_t here = std::min(rows, left_);
        // A group that is passed over whole is not read.
        const std::int64_t skipped = here == left_ ? here : column_->Skip(here);
        check(skipped == here, name_, ": row ", rows_done_, ": fewer values than rows");
        left_ -= here;
        rows -= here;
      }
    });
  }

  std::int64_t raw_bytes() const override {
    return rows_ == 0 ? file_bytes_
                      : static_cast<std::int64_t>(static_cast<double>(file_bytes_) *
                                                  static_cast<double>(rows_done_) /
                                                  static_cast<double>(rows_));
  }

 private:
  template <class Action>
  void guard(const Action& action) {
    try {
      action();
    } catch (const parquet::ParquetException& error) {
      fail_to_read(cat(name_, ": row ", rows_done_, " or after"), error.what());
    }
  }

  void find(const parquet::SchemaDescriptor& schema, const std::string& name) {
    std::vector<std::string> texts;
    for (int i = 0; i < schema.num_columns(); ++i) {
      const parquet::ColumnDescriptor& column = *schema.Column(i);
      const std::string path = path_of(column);
      if (is_text(column)) texts.push_back(path);
      if (path == name || column.path()->ToDotString() == name) index_ = i;
    }
    check_usage(index_ >= 0, name_, ": ", missing_column(name, texts));
    const parquet::ColumnDescriptor& column = *schema.Column(index_);
    check_usage(is_text(column), name_, ": column '", name, "': expected strings, got ",
                column.logical_type() && !column.logical_type()->is_none()
                    ? column.logical_type()->ToString()
                    : parquet::TypeToString(column.physical_type()),
                "; choose a column of strings with --column");
    column_name_ = name;
    max_level_ = column.max_definition_level();
    is_list_ = column.max_repetition_level() > 0;
    empty_level_ = empty_list_level(column);
  }

  /// The strings of the row that begins at at_, with line breaks between them.
  bool next_list(Row& row) {
    if (levels_[at_] < empty_level_) {
      row.fault = Fault::kNoText;
      row.reason = cat("'", column_name_, "' is null");
    }
    joined_.clear();
    for (bool any = false;;) {
      if (levels_[at_++] == max_level_) {
        const parquet::ByteArray& value = values_[value_at_++];
        if (std::exchange(any, true)) joined_ += '\n';
        joined_.append(reinterpret_cast<const char*>(value.ptr), value.len);
      }
      if (at_ == levels_.size() && !fill()) break;
      if (repetitions_[at_] == 0) break;
    }
    row.text = joined_;
    return true;
  }

  /// Whether there is a row left, in a group that is open then.
  bool next_group() {
    while (left_ == 0) {
      if (group_ == file_->metadata()->num_row_groups()) return false;
      const auto group = file_->RowGroup(group_++);
      left_ = group->metadata()->num_rows();
      column_ = std::static_pointer_cast<parquet::ByteArrayReader>(group->Column(index_));
    }
    return true;
  }

  bool fill() {
    bool any = false;
    guard([&] {
      if (!next_group()) return;
      levels_.assign(static_cast<std::size_t>(kBatchRows), 0);
      repetitions_.assign(static_cast<std::size_t>(kBatchRows), 0);
      values_.resize(static_cast<std::size_t>(kBatchRows));
      std::int64_t value_count = 0;
      const std::int64_t read =
          column_->ReadBatch(is_list_ ? kBatchRows : std::min(kBatchRows, left_), levels_.data(),
                             repetitions_.data(), values_.data(), &value_count);
      check(read > 0, name_, ": row ", rows_done_, ": the column ends before its rows do",
            "; fetch or write the file again");
      levels_.resize(static_cast<std::size_t>(read));
      // A list has as many values as it likes: the group ends where its column does.
      left_ = is_list_ ? (column_->HasNext() ? left_ : 0) : left_ - read;
      at_ = value_at_ = 0;
      any = true;
    });
    return any;
  }

  std::string name_, column_name_;
  std::int64_t file_bytes_, rows_ = 0, rows_done_ = 0, left_ = 0;  // left_: in the open group
  std::unique_ptr<parquet::ParquetFileReader> file_;
  std::shared_ptr<parquet::ByteArrayReader> column_;
  int index_ = -1, group_ = 0;
  std::int16_t max_level_ = 0;
  bool is_list_ = false;
  std::int16_t empty_level_ = 0;
  std::string joined_;
  std::vector<std::int16_t> levels_, repetitions_;
  std::vector<parquet::ByteArray> values_;
  std::size_t at_ = 0, value_at_ = 0;
};

}  // namespace

std::unique_ptr<RowReader> open_parquet(const fs::path& path, const RowForm& form) {
  return std::make_unique<ParquetReader>(path, form.column);
}

}  // namespace xsa::data
