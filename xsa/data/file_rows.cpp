#include "xsa/data/file_rows.h"

#include <span>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/data/byte_stream.h"

namespace xsa::data {

FileRows::FileRows(std::vector<Input> inputs, const Position& start, std::vector<FileRead> read)
    : inputs_(std::move(inputs)), position_{start.file, 0}, read_(std::move(read)) {
  for (std::int64_t file = 0; file < start.file; ++file) raw_before_ += input(file).file.bytes;
  if (start.row == 0) return;
  open();
  if (!mark_) {
    reader_->skip(start.row);
    position_.row = start.row;
    return;
  }
  const std::string problem =
      "standard input is not what it was when this preparation began; give the same bytes again, "
      "or begin anew with --overwrite";
  for (Row row; position_.row < start.row;)
    check(next(row) && position_.file == start.file, problem);
  check(position_.mark == start.mark, problem);
}

void FileRows::open() {
  const Input& now = input(position_.file);
  if (now.file.path == kStandardInput)
    mark_.emplace();
  else if (now.hash)
    hash_ = std::make_unique<FileHash>(now.file.path);
  reader_ = open_rows(now.file.path, now.form);
}

void FileRows::close() {
  const SourceFile& file = input(position_.file).file;
  if (!mark_) {
    const SourceFile after = inspect(file.path, file.name);
    check(after.bytes == file.bytes && after.modified_ns == file.modified_ns, file.path.string(),
          ": it changed while it was read; run again with --overwrite when nothing writes to it");
  }
  read_.push_back({position_.row, mark_ ? Sha256(*mark_).hex() : hash_ ? hash_->hex() : ""});
  raw_before_ += file.bytes;
  reader_.reset();
  hash_.reset();
  mark_.reset();
  position_ = {position_.file + 1, 0};
}

bool FileRows::next(Row& row) {
  for (;;) {
    if (position_.file == files()) return false;
    if (!reader_) open();
    if (reader_->next(row)) break;
    close();
  }
  row_begun_ = position_.row;
  if (mark_) mark_->add(std::as_bytes(std::span(row.text)));
  if (row.ends) {
    ++position_.row;
    if (mark_) {
      mark_->add(std::as_bytes(std::span(&position_.row, 1)));  // rows do not run together
      position_.mark = Sha256(*mark_).hex();
    }
  }
  return true;
}

std::optional<bool> FileRows::held_out() const {
  const Input& now = input(position_.file);
  return now.form.cut ? row_begun_ > 0 : now.held_out;
}

std::int64_t FileRows::raw_bytes() const {
  return raw_before_ + (reader_ ? reader_->raw_bytes() : 0);
}

}  // namespace xsa::data
