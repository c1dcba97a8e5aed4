#include "xsa/data/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "xsa/base/hash.h"
#include "xsa/data/file_head.h"

namespace xsa::data {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;
constexpr double kMaxInvalidShare = 0.1;
constexpr std::string_view kBinaryRemedy =
    "; leave it out, or convert it to UTF-8 text (e.g. with iconv); of packed files, parquet and "
    "Arrow, xsa prepare makes token shards for training";

}  // namespace

void for_each_piece(const SourceFile& file, std::int64_t begin, std::int64_t end,
                    const std::function<void(std::string_view)>& take) {
  const auto fail = [&] {
    throw Error(cat(file.path.string(), ": cannot read: ", std::strerror(errno),
                    "; check that you may read it"));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(
      std::fopen(file.path.c_str(), "rb"), [](std::FILE* open) { return std::fclose(open); });
  if (!stream || ::fseeko(stream.get(), begin, SEEK_SET) != 0) fail();
  std::vector<char> buffer(static_cast<std::size_t>(std::min(kPieceBytes, end - begin)));
  while (begin < end) {
    const auto wanted = static_cast<std::size_t>(std::min(kPieceBytes, end - begin));
    const std::size_t count = std::fread(buffer.data(), 1, wanted, stream.get());
    if (count < wanted && std::ferror(stream.get())) fail();
    check(count == wanted, file.path.string(), ": it became shorter while it was read (expected ",
          file.bytes, " bytes); run again when nothing writes to it");
    take({buffer.data(), count});
    begin += static_cast<std::int64_t>(count);
  }
}

void TextCheck::add(std::string_view piece) {
  if (bytes_ == 0) {
    check(!is_lfs_pointer(piece), name_, ": expected a text, got ", kLfsPointer);
    const std::string encoding = foreign_encoding(piece);
    check(encoding.empty(), name_, ": expected text in UTF-8, got ", encoding);
  }
  const std::size_t nul = piece.find('\0');
  check(nul == std::string_view::npos, name_, ": expected text, got binary data: a NUL byte at ",
        bytes_ + static_cast<std::int64_t>(nul), kBinaryRemedy);
  utf8_.add(piece);
  bytes_ += static_cast<std::int64_t>(piece.size());
}

void TextCheck::finish() const {
  const auto allowed = static_cast<std::int64_t>(kMaxInvalidShare * static_cast<double>(bytes_));
  check(utf8_.invalid_bytes() <= allowed, name_,
        ": expected text, got binary data: ", utf8_.invalid_bytes(), " of ", bytes_,
        " bytes are not UTF-8, more than a tenth", kBinaryRemedy);
}

std::string check_and_hash(const SourceFile& file,
                           const std::function<void(std::int64_t)>& progress) {
  Sha256 hash;
  TextCheck text(file.path.string());
  for_each_piece(file, 0, file.bytes, [&](std::string_view piece) {
    text.add(piece);
    hash.add(std::as_bytes(std::span(piece)));
    progress(static_cast<std::int64_t>(piece.size()));
  });
  text.finish();
  return hash.hex();
}

}  // namespace xsa::data
