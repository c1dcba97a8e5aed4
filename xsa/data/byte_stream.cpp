#include "xsa/data/byte_stream.h"

#include <arrow/util/compression.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/data/file_head.h"

namespace xsa::data {
namespace {

constexpr std::size_t kRawBytes = 256 << 10;
constexpr std::size_t kHeadBytes = 64;  // tell how a file is packed, and whether it was fetched
constexpr std::string_view kGzip = "\x1f\x8b", kZstd = "\x28\xb5\x2f\xfd";

InputFile open_for_reading(const std::filesystem::path& path) {
  std::error_code ignored;  // opening says it better
  check(!std::filesystem::is_directory(path, ignored), path.string(),
        ": expected a file, got a folder");
  return InputFile::open(path);
}

/// How a file is packed that is not read; "" if it is not.
std::string_view foreign_packing(std::string_view head) {
  if (head.starts_with("\xfd"
                       "7zXZ"))
    return "xz";
  if (head.starts_with("PK\x03\x04")) return "zip";
  if (head.starts_with("BZh") && head.find("1AY&SY") == 4) return "bzip2";
  return "";
}

}  // namespace

struct ByteStream::Unpacker {
  std::string format;
  std::shared_ptr<arrow::util::Decompressor> state;

  explicit Unpacker(bool gzip) : format(gzip ? "gzip" : "zstd") {
    const auto kind = gzip ? arrow::Compression::GZIP : arrow::Compression::ZSTD;
    const auto codec = arrow::util::Codec::Create(kind);
    check(codec.ok(), format, ": ", codec.status().message());
    const auto made = (*codec)->MakeDecompressor();
    check(made.ok(), format, ": ", made.status().message());
    state = *made;
  }
};

bool is_packed(const std::filesystem::path& path) { return ByteStream(path).packed(); }

ByteStream::ByteStream(const std::filesystem::path& path)
    : file_(open_for_reading(path)), raw_(kRawBytes) {
  while (end_ < kHeadBytes) {
    const std::size_t got = read_raw(std::span(raw_).subspan(end_));
    if (got == 0) break;
    end_ += got;
  }
  const std::string_view head(raw_.data(), end_);
  const std::string_view packing = foreign_packing(head);
  check_usage(packing.empty(), name(),
              ": expected a plain file, or one packed by gzip or zstd, got ", packing,
              "; unpack it first");
  check_usage(!is_lfs_pointer(head), name(), ": expected the file itself, got ", kLfsPointer);
  if (head.starts_with(kGzip) || head.starts_with(kZstd))
    unpacker_ = std::make_unique<Unpacker>(head.starts_with(kGzip));
}

ByteStream::~ByteStream() = default;

std::size_t ByteStream::read_raw(std::span<char> out) {
  std::size_t count = 0;
  while (count < out.size() && (count == 0 || file_.is_ready())) {
    const std::size_t got = file_.read(out.subspan(count));
    if (got == 0) break;
    count += got;
  }
  raw_bytes_ += static_cast<std::int64_t>(count);
  return count;
}

bool ByteStream::refill() {
  if (begin_ == end_) {
    begin_ = 0;
    end_ = read_raw(raw_);
  }
  return begin_ < end_;
}

std::size_t ByteStream::unpack(std::span<char> out) {
  Unpacker& unpacker = *unpacker_;
  const auto fail = [&](const std::string& reason) {
    throw Error(cat(name(), ": damaged ", unpacker.format, " data near byte ",
                    raw_bytes_ - static_cast<std::int64_t>(end_ - begin_), " of the file: ", reason,
                    "; fetch the file again, or leave it out"));
  };
  const bool more = refill();
  if (unpacker.state->IsFinished()) {  // another stream may follow
    if (!more) return 0;
    const arrow::Status status = unpacker.state->Reset();
    if (!status.ok()) fail(status.message());
  }
  const auto got = unpacker.state->Decompress(
      static_cast<std::int64_t>(end_ - begin_),
      reinterpret_cast<const std::uint8_t*>(raw_.data()) + begin_,
      static_cast<std::int64_t>(out.size()), reinterpret_cast<std::uint8_t*>(out.data()));
  if (!got.ok()) fail(got.status().message());
  begin_ += static_cast<std::size_t>(got->bytes_read);
  if (got->bytes_read == 0 && got->bytes_written == 0 && !unpacker.state->IsFinished())
    fail(more ? "it leads nowhere" : "it is truncated");
  return static_cast<std::size_t>(got->bytes_written);
}

std::size_t ByteStream::read(std::span<char> out) {
  std::size_t count = 0;
  while (count < out.size()) {
    const std::span<char> rest = out.subspan(count);
    if (unpacker_) {
      count += unpack(rest);
      if (unpacker_->state->IsFinished() && !refill()) break;
    } else {
      if (!refill()) break;
      const std::size_t got = std::min(rest.size(), end_ - begin_);
      std::memcpy(rest.data(), raw_.data() + begin_, got);
      begin_ += got;
      count += got;
    }
  }
  return count;
}

LineReader::LineReader(ByteStream& stream, std::size_t max_bytes)
    : stream_(stream), max_bytes_(max_bytes), buffer_(kRawBytes) {}

void LineReader::refill() {
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const std::size_t room = buffer_.size() - end_;
  const std::size_t got = stream_.read({buffer_.data() + end_, room});
  end_ += got;
  at_end_ = got < room;
}

bool LineReader::next(std::string_view& line, bool& too_long) {
  too_long = false;
  std::size_t size = 0;  // of the line, as far as it was searched
  for (;;) {
    const char* from = buffer_.data() + begin_;
    const void* found = std::memchr(from + size, '\n', end_ - begin_ - size);
    size = found ? static_cast<std::size_t>(static_cast<const char*>(found) - from) : end_ - begin_;
    too_long |= size > max_bytes_;
    if (found || at_end_) {
      line = {from, too_long ? 0 : size};
      begin_ += size + (found ? 1 : 0);
      if (std::exchange(at_begin_, false)) {
        const std::string encoding = foreign_encoding(line);
        check_usage(encoding.empty(), stream_.name(), ": expected UTF-8, got ", encoding);
        if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
      }
      return found || size > 0 || too_long;
    }
    if (too_long) begin_ = end_, size = 0;  // what follows is passed over
    refill();
  }
}

}  // namespace xsa::data
