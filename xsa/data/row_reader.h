// Documents out of files of any kind: one text a row, whole or in pieces, with what is wrong with
// it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "xsa/data/records.h"

namespace xsa::data {

/// Why a row gives no document. Damage to a file itself is no fault of a row but an Error.
enum class Fault { kNone, kBroken, kNoText, kWrongType, kInvalidUtf8, kBinary, kTooLong };
inline constexpr std::array<const char*, 7> kFaultNames = {
    "", "broken", "no_text", "wrong_type", "invalid_utf8", "binary", "too_long"};

/// A row, or a piece of one.
struct Row {
  std::string_view text;  // valid until the next row is read
  bool starts = true, ends = true;
  Fault fault = Fault::kNone;
  std::string reason{};
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  /// The next row or piece; false at the end. Throws Error for a file that is damaged or truncated.
  virtual bool next(Row& row) = 0;
  /// Passes over whole rows, from between two rows. Throws Error if there are fewer.
  virtual void skip(std::int64_t rows);
  /// How far in the file: in bytes of the file, for progress.
  virtual std::int64_t raw_bytes() const = 0;
};

struct RowForm {
  FileKind kind = FileKind::kText;
  std::string column = "text";            // of records
  std::size_t max_line_bytes = 64 << 20;  // of JSON lines: longer ones are at fault
  bool guess = false;  // nobody said that it is text, nor does its name: what looks like something
                       // else is refused
  std::optional<std::int64_t> cut = {};  // a text is two documents: [0, cut) and the rest
};

/// The rows of a file (kText: the file is one row), or of standard input (text, JSON lines, an
/// Arrow stream). Throws UsageError where the column is missing, with the nearest one, or holds no
/// text.
std::unique_ptr<RowReader> open_rows(const std::filesystem::path& path, const RowForm& form);

// What open_rows chooses from.
std::unique_ptr<RowReader> open_text(const std::filesystem::path& path, const RowForm& form);
std::unique_ptr<RowReader> open_json_lines(const std::filesystem::path& path, const RowForm& form);
std::unique_ptr<RowReader> open_parquet(const std::filesystem::path& path, const RowForm& form);
std::unique_ptr<RowReader> open_arrow(const std::filesystem::path& path, const RowForm& form);

/// "no column 'txt' (did you mean 'text'?); columns of text: text, meta.title". `texts`: those that
/// can be taken, each by its path.
std::string missing_column(const std::string& column, const std::vector<std::string>& texts);

}  // namespace xsa::data
