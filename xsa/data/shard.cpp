#include "xsa/data/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "xsa/base/error.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "shards are mapped, not converted");

constexpr std::int32_t kMagic = 20240520;
constexpr std::int32_t kLlama3Magic = 20240801;
constexpr std::int32_t kVersion = 1;
constexpr std::int64_t kMaxTokens = std::numeric_limits<std::int32_t>::max();
constexpr text::Token kMaxId = std::numeric_limits<std::uint16_t>::max();

constexpr std::string_view kRemedy =
    "; if it lies in the data cache, remove its folder and it is made again; if xsa prepare made "
    "it, repeat that with --overwrite";

template <class Expected, class Got>
[[noreturn]] void refuse(const fs::path& path, std::string_view field, const Expected& expected,
                         const Got& got) {
  throw Error(cat(path.string(), ": not a token shard: ", field, ": expected ", expected, ", got ",
                  got, kRemedy));
}

ShardHeader read_header(const RandomAccessFile& file) {
  const fs::path& path = file.path();
  ShardHeader header;
  if (file.size() < static_cast<std::int64_t>(sizeof header))
    refuse(path, "file size", cat("at least the header's ", sizeof header, " bytes"), file.size());
  file.read(0, std::as_writable_bytes(std::span(header)));
  check(header[0] != kLlama3Magic, path.string(), ": a shard of llm.c's format for Llama 3 (magic ",
        kLlama3Magic, ", tokens of 4 bytes); expected magic ", kMagic, " and tokens of 2 bytes");
  if (header[0] != kMagic) refuse(path, "magic (int32 0)", kMagic, header[0]);
  if (header[1] != kVersion) refuse(path, "version (int32 1)", kVersion, header[1]);
  if (header[2] < 0) refuse(path, "token count (int32 2)", "0 or more", header[2]);
  const auto odd = std::find_if(header.begin() + 3, header.end(), [](auto x) { return x != 0; });
  if (odd != header.end())
    refuse(path, cat("reserved field (int32 ", odd - header.begin(), ")"), 0, *odd);
  return header;
}

}  // namespace

ShardHeader shard_header(std::int64_t tokens) {
  check(tokens >= 0 && tokens <= kMaxTokens, "token shard: expected at most ", kMaxTokens,
        " tokens, got ", tokens);
  return {kMagic, kVersion, static_cast<std::int32_t>(tokens)};
}

void write_shard(const fs::path& path, std::span<const text::Token> tokens) {
  const ShardHeader header = shard_header(static_cast<std::int64_t>(tokens.size()));
  std::string bytes(reinterpret_cast<const char*>(header.data()), sizeof header);
  for (const text::Token id : tokens) {
    check(id <= kMaxId, path.string(), ": a shard holds ids up to ", kMaxId, ", got ", id,
          "; use a tokenizer with a smaller vocabulary");
    bytes += static_cast<char>(id & 0xFF);
    bytes += static_cast<char>(id >> 8);
  }
  atomic_write(path, bytes);
}

Shard::Shard(const fs::path& path, ShardFormat format) : file_(path) {
  constexpr auto kTokenBytes = static_cast<std::int64_t>(sizeof(std::uint16_t));
  if (format == ShardFormat::kNanoGpt) {
    check(file_.size() % kTokenBytes == 0, path.string(),
          ": not nanoGPT's tokens: expected an even number of bytes (uint16), got ", file_.size(),
          "; was it cut short?");
    size_ = file_.size() / kTokenBytes;
    return;
  }
  const ShardHeader header = read_header(file_);
  begin_ = sizeof header;
  size_ = header[2];
  const std::int64_t expected = begin_ + size_ * kTokenBytes;
  if (file_.size() != expected)
    refuse(path, "file size", cat(expected, " bytes (", size_, " tokens of 2 after the header)"),
           file_.size());
}

void Shard::read(std::int64_t begin, std::span<std::uint16_t> out) const {
  file_.read(offset_of(begin), std::as_writable_bytes(out));
}

void Shard::will_need(std::int64_t begin, std::int64_t count) const {
  file_.will_need(offset_of(begin), offset_of(count) - offset_of(0));
}

bool is_llm_c_shard(const fs::path& path) {
  const RandomAccessFile file(path);
  std::array<std::int32_t, 2> begin{};
  if (file.size() < static_cast<std::int64_t>(sizeof begin)) return false;
  file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin[0] == kMagic && begin[1] == kVersion;
}

TokenStream::TokenStream(const std::vector<fs::path>& shards, ShardFormat format,
                         std::int64_t vocabulary)
    : vocabulary_(vocabulary) {
  for (const fs::path& path : shards) {
    shards_.emplace_back(path, format);
    begins_.push_back(size_);
    size_ += shards_.back().size();
  }
}

template <class Use>
void TokenStream::for_each_part(std::int64_t begin, std::int64_t count, const Use& use) const {
  check(begin >= 0 && begin <= size_ && count >= 0 && count <= size_ - begin,
        "token stream: expected tokens of [0, ", size_, "), got [", begin, ", ", begin + count,
        ")");
  auto shard = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) -
                                        begins_.begin()) -
               (begins_.empty() ? 0 : 1);
  for (std::int64_t end = begin + count; begin < end; ++shard) {
    const std::int64_t offset = begin - begins_[shard];
    const std::int64_t part = std::min(shards_[shard].size() - offset, end - begin);
    use(shards_[shard], offset, part);
    begin += part;
  }
}

void TokenStream::read(std::int64_t begin, std::span<std::int64_t> out) const {
  std::vector<std::uint16_t> ids(out.size());
  std::span<std::uint16_t> rest = ids;
  for_each_part(
      begin, static_cast<std::int64_t>(out.size()),
      [&](const Shard& shard, std::int64_t offset, std::int64_t count) {
        const auto part = rest.first(static_cast<std::size_t>(count));
        shard.read(offset, part);
        const auto beyond =
            std::find_if(part.begin(), part.end(), [&](auto id) { return id >= vocabulary_; });
        check(beyond == part.end(), shard.path().string(), ": byte ",
              shard.offset_of(offset + (beyond - part.begin())), ": expected token ids below ",
              vocabulary_, ", the vocabulary, got ", beyond == part.end() ? 0 : *beyond,
              "; name the tokenizer that made the file with data.tokenizer");
        rest = rest.subspan(part.size());
      });
  std::copy(ids.begin(), ids.end(), out.begin());
}

void TokenStream::will_need(std::int64_t begin, std::int64_t count) const {
  for_each_part(begin, count, [](const Shard& shard, std::int64_t offset, std::int64_t part) {
    shard.will_need(offset, part);
  });
}

}  // namespace xsa::data
