// The rows of many files, one after another, with a position to continue from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/hash.h"
#include "xsa/base/json.h"
#include "xsa/data/row_reader.h"
#include "xsa/data/source.h"

namespace xsa::data {

struct Input {
  SourceFile file;
  RowForm form;
  std::optional<bool> held_out{};  // the side of its documents, if not by their hash
  bool hash = true;                // whether the file's SHA-256 is wanted
  bool check_utf8 = true;          // else any bytes pass
};

/// Between two rows.
struct Position {
  std::int64_t file = 0, row = 0;
  std::string mark{};  // of standard input: SHA-256 of the rows before
};

/// A file that was read to its end.
struct FileRead {
  std::int64_t rows = 0;
  std::string sha256{};
};

class FileRows {
 public:
  /// Continues at `start`; `read`: the files before. Throws Error where standard input is not what
  /// it was.
  FileRows(std::vector<Input> inputs, const Position& start, std::vector<FileRead> read);

  /// As RowReader's. Throws Error for a file that changed while it was read.
  bool next(Row& row);
  /// Behind the last row that ended.
  const Position& position() const { return position_; }
  /// Of the row that next gave.
  std::optional<bool> held_out() const;
  std::int64_t row() const { return row_begun_; }
  const Input& input(std::int64_t file) const { return inputs_[static_cast<std::size_t>(file)]; }
  std::int64_t files() const { return static_cast<std::int64_t>(inputs_.size()); }
  /// Bytes of the files, so far.
  std::int64_t raw_bytes() const;
  /// The files before position().file.
  const std::vector<FileRead>& read() const { return read_; }

 private:
  void open();
  void close();

  std::vector<Input> inputs_;
  Position position_;
  std::vector<FileRead> read_;
  std::unique_ptr<RowReader> reader_;
  std::unique_ptr<FileHash> hash_;
  std::optional<Sha256> mark_;
  std::int64_t raw_before_ = 0, row_begun_ = 0;
};

}  // namespace xsa::data
