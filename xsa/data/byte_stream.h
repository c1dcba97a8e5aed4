// A file or standard input as bytes, in bounded memory; gzip and zstd are told by their first bytes
// and unpacked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/file.h"

namespace xsa::data {

inline constexpr std::string_view kStandardInput = InputFile::kStandardInput;

/// The mark that some editors begin UTF-8 with; it is no part of the text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Whether a file's first bytes say gzip or zstd.
bool is_packed(const std::filesystem::path& path);

class ByteStream {
 public:
  /// Throws Error if the path cannot be opened, UsageError for what is packed otherwise, or stands
  /// for a file that was not fetched.
  explicit ByteStream(const std::filesystem::path& path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Fills `out`; less than its size only at the end. Throws Error if the file cannot be read, or
  /// ends within a packed stream; Interrupted when asked to stop, unless it is a regular file.
  std::size_t read(std::span<char> out);
  /// Bytes of the file itself, before unpacking, that were taken so far.
  std::int64_t raw_bytes() const { return raw_bytes_; }
  const std::string& name() const { return file_.name(); }
  bool packed() const { return unpacker_ != nullptr; }

 private:
  struct Unpacker;
  std::size_t read_raw(std::span<char> out);
  bool refill();
  std::size_t unpack(std::span<char> out);

  InputFile file_;
  std::int64_t raw_bytes_ = 0;
  std::vector<char> raw_;  // read but not yet given: raw_[begin_, end_)
  std::size_t begin_ = 0, end_ = 0;
  std::unique_ptr<Unpacker> unpacker_;  // of a packed stream
};

/// The lines of a stream, without kByteOrderMark. Memory: the longest line, at most `max_bytes`,
/// and a buffer. Throws UsageError for UTF-16 and UTF-32.
class LineReader {
 public:
  /// `stream` must outlive the reader.
  LineReader(ByteStream& stream, std::size_t max_bytes);
  /// The next line without its '\n', valid until the next call; false at the end. A line that is
  /// longer than max_bytes comes as "", with `too_long` set.
  bool next(std::string_view& line, bool& too_long);

 private:
  void refill();

  ByteStream& stream_;
  std::size_t max_bytes_, begin_ = 0, end_ = 0;
  std::vector<char> buffer_;
  bool at_begin_ = true, at_end_ = false;
};

}  // namespace xsa::data
