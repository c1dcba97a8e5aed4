#include "xsa/data/row_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/data/byte_stream.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 256 << 10;
static_assert(LineReader::kPadding >= simdjson::SIMDJSON_PADDING);

/// A piece may be empty: the last one of a text whose size is a multiple of the piece's.
class TextReader final : public RowReader {
 public:
  TextReader(const fs::path& path, const RowForm& form)
      : stream_(path), cut_(form.cut.value_or(-1)), guess_(form.guess), buffer_(kPieceBytes) {}

  bool next(Row& row) override {
    if (done_) return false;
    std::size_t wanted = buffer_.size();
    if (position_ < cut_) wanted = std::min(wanted, static_cast<std::size_t>(cut_ - position_));
    const std::size_t got = stream_.read({buffer_.data(), wanted});
    if (position_ == 0 && guess_) refuse_what_is_no_text({buffer_.data(), got});
    position_ += static_cast<std::int64_t>(got);
    done_ = got < wanted;
    row = {{buffer_.data(), got}, starts_, done_ || position_ == cut_};
    starts_ = row.ends;
    return true;
  }
  std::int64_t raw_bytes() const override { return stream_.raw_bytes(); }

 private:
  void refuse_what_is_no_text(std::string_view head) const {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    const bool is_json = first != head.npos && head[first] == '{';
    check_usage(!is_json, stream_.name(), ": it looks like JSON lines; say --type jsonl, or ",
                "--type text to take it as it stands");
    check_usage(!head.starts_with("PAR1"), stream_.name(),
                ": it looks like parquet, which is read ", "from its end and needs a file");
    check_usage(!head.starts_with("ARROW1") && !head.starts_with("\xff\xff\xff\xff"),
                stream_.name(), ": it looks like Arrow; say --type arrow");
  }

  ByteStream stream_;
  std::int64_t cut_, position_ = 0;
  bool guess_;
  std::vector<char> buffer_;
  bool starts_ = true, done_ = false;
};

/// Every line is parsed whole: what is broken anywhere in it counts as broken.
class JsonLinesReader final : public RowReader {
 public:
  JsonLinesReader(const fs::path& path, const RowForm& form)
      : stream_(path),
        lines_(stream_, form.max_line_bytes),
        column_(form.column),
        max_line_bytes_(form.max_line_bytes) {}

  bool next(Row& row) override {
    bool too_long = false;
    if (!next_line(too_long)) return false;
    row = Row{};
    if (too_long)
      fault(row, Fault::kTooLong,
            cat("longer than ", max_line_bytes_ >> 20, " MiB (--max-row-mib)"));
    else
      read(row);
    return true;
  }
  void skip(std::int64_t rows) override {
    for (bool too_long = false; rows > 0; --rows)
      check(next_line(too_long), stream_.name(), ": it has become shorter");
  }
  std::int64_t raw_bytes() const override { return stream_.raw_bytes(); }

 private:
  /// Blank lines are no rows.
  bool next_line(bool& too_long) {
    while (lines_.next(line_, too_long)) {
      ++number_;
      if (too_long || line_.find_first_not_of(" \t\r") != line_.npos) return true;
    }
    return false;
  }

  void fault(Row& row, Fault kind, const std::string& reason) const {
    row.fault = kind;
    row.reason = cat("line ", number_, ": ", reason);
  }

  void read(Row& row) {
    simdjson::dom::element value;
    const auto error =
        parser_.parse(line_.data(), line_.size(), /*realloc_if_needed=*/false).get(value);
    if (error == simdjson::UTF8_ERROR)
      return fault(row, Fault::kInvalidUtf8, "expected UTF-8, got other bytes");
    if (error)
      return fault(row, Fault::kBroken, cat("expected JSON: ", simdjson::error_message(error)));
    simdjson::dom::object object;
    if (value.get(object)) return fault(row, Fault::kBroken, "expected a JSON object in each line");
    simdjson::dom::element text;
    if (object.at_key(column_).get(text)) return fault(row, Fault::kNoText, missing(object));
    if (text.is_null()) return fault(row, Fault::kNoText, cat("'", column_, "' is null"));
    if (text.get(row.text))
      fault(row, Fault::kWrongType, cat("'", column_, "': expected a string, got ", text.type()));
  }

  std::string missing(const simdjson::dom::object& object) const {
    std::vector<std::string> keys;
    for (const auto field : object) keys.emplace_back(field.key);
    return missing_column(column_, keys);
  }

  ByteStream stream_;
  LineReader lines_;
  std::string column_;
  std::size_t max_line_bytes_;
  simdjson::dom::parser parser_;
  std::string_view line_;
  std::int64_t number_ = 0;
};

}  // namespace

void RowReader::skip(std::int64_t rows) {
  for (Row row; rows > 0; rows -= row.ends ? 1 : 0)
    check(next(row), "a source has become shorter; run again with --overwrite");
}

std::string missing_column(const std::string& column, const std::vector<std::string>& columns) {
  constexpr std::size_t kShown = 20;
  std::string known;
  for (std::size_t i = 0; i < std::min(columns.size(), kShown); ++i)
    known += (i == 0 ? "" : ", ") + columns[i];
  if (columns.size() > kShown) known += ", ...";
  return cat("no column '", column, "'", did_you_mean(column, columns), "; it has ",
             known.empty() ? "none" : known, " (--column chooses)");
}

std::unique_ptr<RowReader> open_text(const fs::path& path, const RowForm& form) {
  return std::make_unique<TextReader>(path, form);
}

std::unique_ptr<RowReader> open_json_lines(const fs::path& path, const RowForm& form) {
  return std::make_unique<JsonLinesReader>(path, form);
}

std::unique_ptr<RowReader> open_rows(const fs::path& path, const RowForm& form) {
  switch (form.kind) {
    case FileKind::kText:
      return open_text(path, form);
    case FileKind::kJsonLines:
      return open_json_lines(path, form);
    case FileKind::kParquet:
      return open_parquet(path, form);
    case FileKind::kArrow:
      break;
  }
  return open_arrow(path, form);
}

}  // namespace xsa::data
