#include "xsa/data/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <limits>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/hash.h"
#include "xsa/base/signals.h"
#include "xsa/data/file_head.h"

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

/// Two writes within a tick of the system's clock may leave the same times: at most 10 ms.
constexpr std::chrono::milliseconds kTick{20};

template <class Expected, class Got>
[[noreturn]] void refuse(const fs::path& path, std::string_view field, const Expected& expected,
                         const Got& got) {
  throw Error(cat(path.string(), ": not a token shard: ", field, ": expected ", expected, ", got ",
                  got, kRemedy));
}

/// The begin of a file, at most as much of it as tells what it is.
std::string head_of(const RandomAccessFile& file) {
  constexpr std::int64_t kHeadBytes = 64;
  std::string head(static_cast<std::size_t>(std::min(file.size(), kHeadBytes)), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  return head;
}

/// The first two fields of a header.
std::array<std::int32_t, 2> begin_of(const RandomAccessFile& file) {
  std::array<std::int32_t, 2> begin{};
  if (file.size() >= static_cast<std::int64_t>(sizeof begin))
    file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin;
}

constexpr std::string_view kLlama3 = "llm.c's format for Llama 3, tokens of 4 bytes";

ShardHeader read_header(const RandomAccessFile& file) {
  const fs::path& path = file.path();
  check(!is_lfs_pointer(head_of(file)), path.string(), ": expected a token shard, got ",
        kLfsPointer);
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

struct Shard::Verified {
  std::mutex mutex;
  std::string sha256;  // "" as long as nobody knows it
  FileState opened;
  FileState state{};  // that it was found in; bytes = 0: not yet
};

Shard::~Shard() = default;
Shard::Shard(Shard&& other) noexcept = default;

Shard::Shard(const fs::path& path, ShardFormat format, std::string sha256)
    : file_(path), verified_(new Verified{{}, std::move(sha256), file_.state()}) {
  constexpr auto kTokenBytes = static_cast<std::int64_t>(sizeof(std::uint16_t));
  if (format == ShardFormat::kNanoGpt) {
    check(!is_lfs_pointer(head_of(file_)), path.string(), ": expected nanoGPT's tokens, got ",
          kLfsPointer);
    check(begin_of(file_)[0] != kLlama3Magic, path.string(), ": expected nanoGPT's tokens, got ",
          kLlama3, "; prepare the text anew with the tokenizer gpt2");
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
  if (out.empty()) return;
  for (;;) {
    if (verified_state().bytes == 0) verify();
    const FileState before = verified_state();
    file_.read(offset_of(begin), std::as_writable_bytes(out));
    if (file_.state() == before) return;
    verify();  // it may have been touched alone
  }
}

std::string Shard::verify(const HashProgress& progress) const {
  const std::lock_guard lock(verified_->mutex);
  if (file_.size() > 0 && file_.state() != verified_->state) hash_anew(*verified_, progress);
  if (file_.size() == 0) verified_->sha256 = Sha256().hex();
  return verified_->sha256;
}

FileState Shard::verified_state() const {
  const std::lock_guard lock(verified_->mutex);
  return verified_->state;
}

bool Shard::recall(const FileState& state, const std::string& sha256) const {
  const std::lock_guard lock(verified_->mutex);
  if (file_.state() != state || state != verified_->opened) return false;
  if (!verified_->sha256.empty() && verified_->sha256 != sha256) return false;
  verified_->sha256 = sha256;
  verified_->state = state;
  return true;
}

void Shard::hash_anew(Verified& verified, const HashProgress& progress) const {
  constexpr const char* kChanged =
      "; was it cut short, or written to meanwhile? try again when nothing writes to it";
  const auto age = [&](const FileState& state) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return now - std::chrono::nanoseconds(std::max(state.modified_ns, state.changed_ns));
  };
  const FileState before = file_.state();
  // A file of this moment waits, so that what writes to it from here on changes its times.
  if (age(before) < kTick) std::this_thread::sleep_for(kTick);
  check(file_.state() == before && before.bytes == file_.size(), path().string(), ": expected ",
        file_.size(), " bytes at rest, got ", before.bytes, kChanged);
  // Its header was read when it was opened, and is not read again.
  check(!verified.sha256.empty() || before == verified.opened, path().string(),
        ": expected the file that was opened, got another", kChanged);
  Sha256 hash;
  std::vector<std::byte> piece(std::size_t{1} << 20);
  for (std::int64_t at = 0; at < file_.size();) {
    if (const int signal = stop_signal())
      throw Interrupted(signal, "stopped while checking " + path().string());
    const auto part = std::span(piece).first(static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(piece.size()), file_.size() - at)));
    file_.read(at, part);
    hash.add(part);
    at += static_cast<std::int64_t>(part.size());
    if (progress) progress(static_cast<std::int64_t>(part.size()));
  }
  check(file_.state() == before, path().string(), ": it changed while it was read", kChanged);
  const std::string found = hash.hex();
  check(verified.sha256.empty() || verified.sha256 == found, path().string(), ": expected SHA-256 ",
        verified.sha256, ", got ", found,
        ": the file was changed after it was made; bring the old one back", kRemedy);
  verified.sha256 = found;
  verified.state = before;
}

void Shard::will_need(std::int64_t begin, std::int64_t count) const {
  file_.will_need(offset_of(begin), offset_of(count) - offset_of(0));
}

bool is_llm_c_shard(const fs::path& path) {
  const auto [magic, version] = begin_of(RandomAccessFile(path));
  return magic == kMagic && version == kVersion;
}

std::string no_llm_c_shard(const fs::path& path) {
  const RandomAccessFile file(path);
  const auto [magic, version] = begin_of(file);
  if (file.size() == 0) return "an empty file";
  if (is_lfs_pointer(head_of(file))) return std::string(kLfsPointer);
  if (magic == kLlama3Magic) return cat("magic ", magic, ": ", kLlama3);
  if (magic != kMagic) return cat("magic (int32 0) ", magic, " for ", kMagic);
  return cat("version (int32 1) ", version, " for ", kVersion);
}

TokenStream::TokenStream(const std::vector<fs::path>& shards, ShardFormat format,
                         std::int64_t vocabulary, const std::vector<std::string>& sha256)
    : vocabulary_(vocabulary) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards_.emplace_back(shards[i], format, sha256.empty() ? "" : sha256[i]);
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
