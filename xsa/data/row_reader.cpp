#include "xsa/data/row_reader.h"

#include <algorithm>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/data/byte_stream.h"
#include "xsa/data/file_head.h"
#include "xsa/data/json_text.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 256 << 10;

/// A piece may be empty: the last one of a text whose size is a multiple of the piece's.
class TextReader final : public RowReader {
 public:
  TextReader(const fs::path& path, const RowForm& form)
      : stream_(path),
        cut_(form.cut.value_or(-1)),
        guess_(form.guess),
        is_file_(path != kStandardInput),
        buffer_(kPieceBytes) {}

  bool next(Row& row) override {
    if (done_) return false;
    std::size_t wanted = buffer_.size();
    if (position_ < cut_) wanted = std::min(wanted, static_cast<std::size_t>(cut_ - position_));
    const std::size_t got = stream_.read({buffer_.data(), wanted});
    std::string_view text(buffer_.data(), got);
    if (position_ == 0) {
      if (const std::string encoding = foreign_encoding(text); !encoding.empty()) {
        done_ = true;
        row = Row{.fault = Fault::kInvalidUtf8, .reason = "expected UTF-8, got " + encoding};
        return true;
      }
      if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
      if (guess_) refuse_what_is_no_text(text);
    }
    position_ += static_cast<std::int64_t>(got);
    done_ = got < wanted;
    row = {text, starts_, done_ || position_ == cut_};
    starts_ = row.ends;
    return true;
  }
  std::int64_t raw_bytes() const override { return stream_.raw_bytes(); }

 private:
  void refuse_what_is_no_text(std::string_view head) const {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    const std::size_t second = head.find_first_not_of(" \t\r\n", first + 1);
    const bool is_json = first != head.npos && head[first] == '{' && second != head.npos &&
                         (head[second] == '"' || head[second] == '}');
    check_usage(!is_json, stream_.name(), ": it looks like JSON lines; say --type jsonl, or ",
                "--type text to take it as it stands");
    check_usage(!head.starts_with("PAR1"), stream_.name(), ": it looks like parquet; ",
                is_file_ ? "say --type parquet" : "that is read from its end and needs a file");
    check_usage(!head.starts_with("ARROW1") && !head.starts_with("\xff\xff\xff\xff"),
                stream_.name(), ": it looks like Arrow; say --type arrow");
  }

  ByteStream stream_;
  std::int64_t cut_, position_ = 0;
  bool guess_, is_file_;
  std::vector<char> buffer_;
  bool starts_ = true, done_ = false;
};

class JsonLinesReader final : public RowReader {
 public:
  JsonLinesReader(const fs::path& path, const RowForm& form)
      : stream_(path),
        lines_(stream_, form.max_line_bytes),
        json_(form.column),
        max_line_bytes_(form.max_line_bytes) {}

  bool next(Row& row) override {
    bool too_long = false;
    if (!next_line(too_long)) return false;
    if (too_long)
      row = Row{.fault = Fault::kTooLong,
                .reason = cat("longer than ", max_line_bytes_ >> 20, " MiB (--max-row-mib)")};
    else
      json_.read(line_, row);
    if (row.fault != Fault::kNone) row.reason = cat("line ", number_, ": ", row.reason);
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

  ByteStream stream_;
  LineReader lines_;
  JsonText json_;
  std::size_t max_line_bytes_;
  std::string_view line_;
  std::int64_t number_ = 0;
};

}  // namespace

void RowReader::skip(std::int64_t rows) {
  for (Row row; rows > 0; rows -= row.ends ? 1 : 0)
    check(next(row), "a source has become shorter; run again with --overwrite");
}

std::string missing_column(const std::string& column, const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 20;
  std::string known;
  for (std::size_t i = 0; i < std::min(texts.size(), kShown); ++i)
    known += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > kShown) known += ", ...";
  return cat("no column '", column, "'", did_you_mean(column, texts),
             "; columns of text: ", known.empty() ? "none" : known, " (--column chooses)");
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
