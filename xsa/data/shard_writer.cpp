#include "xsa/data/shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/signals.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferTokens = std::size_t{1} << 17;
constexpr std::size_t kHashers = 4;  // threads at once
constexpr std::chrono::milliseconds kHashPoll{10};

std::int64_t header_bytes(ShardFormat format) {
  return format == ShardFormat::kLlmC ? static_cast<std::int64_t>(sizeof(ShardHeader)) : 0;
}

std::int64_t file_bytes(ShardFormat format, std::int64_t tokens) {
  return header_bytes(format) + tokens * static_cast<std::int64_t>(sizeof(std::uint16_t));
}

}  // namespace

ShardWriter::ShardWriter(const fs::path& path, ShardFormat format, std::int64_t tokens)
    : path_(path),
      format_(format),
      fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)),
      size_(tokens),
      written_(tokens) {
  if (fd_ < 0) fail("create");
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  const auto wanted = static_cast<off_t>(file_bytes(format, tokens));
  check(tokens == 0 || end >= wanted, path.string(), ": expected at least ", wanted, " bytes, got ",
        end, "; begin anew with --overwrite");
  if (::ftruncate(fd_, wanted) != 0 || ::lseek(fd_, wanted, SEEK_SET) < 0) fail("cut");
}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void ShardWriter::fail(std::string_view action) const {
  throw Error(cat(path_.string(), ": cannot ", action, ": ", std::strerror(errno)));
}

void ShardWriter::write(const void* data, std::size_t size) {
  check(!broken_, path_.string(), ": an earlier write failed");
  broken_ = true;  // until all of it is written: a part of it must not be written twice
  for (const char* bytes = static_cast<const char*>(data); size > 0;) {
    const ssize_t count = ::write(fd_, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write");
    bytes += count;
    size -= static_cast<std::size_t>(count);
  }
  broken_ = false;
}

void ShardWriter::flush() {
  write(buffer_.data(), buffer_.size() * sizeof buffer_[0]);
  written_ += static_cast<std::int64_t>(buffer_.size());
  buffer_.clear();
}

void ShardWriter::add(std::span<const std::uint16_t> tokens) {
  size_ += static_cast<std::int64_t>(tokens.size());
  if (buffer_.size() + tokens.size() > kBufferTokens) flush();
  if (tokens.size() > kBufferTokens) {
    write(tokens.data(), tokens.size_bytes());
    written_ = size_;
  } else {
    buffer_.insert(buffer_.end(), tokens.begin(), tokens.end());
  }
}

void ShardWriter::cut(std::int64_t tokens) {
  const std::int64_t kept = std::min(tokens, written_);
  const auto end = static_cast<off_t>(file_bytes(format_, kept));
  if (::ftruncate(fd_, end) != 0 || ::lseek(fd_, end, SEEK_SET) < 0) fail("cut");
  buffer_.resize(static_cast<std::size_t>(tokens - kept));
  size_ = tokens;
  written_ = kept;
  broken_ = false;
}

void ShardWriter::sync() {
  flush();
  if (::fsync(fd_) != 0) fail("sync");
}

void ShardWriter::finish() {
  flush();
  if (format_ == ShardFormat::kLlmC) {
    const ShardHeader header = shard_header(size_);
    if (::lseek(fd_, 0, SEEK_SET) < 0) fail("write");
    write(&header, sizeof header);
  }
  sync();
}

Json to_json(const SplitState& state) {
  return {{"shards", state.shards},
          {"open_tokens", state.open_tokens},
          {"tokens", state.tokens},
          {"bytes", state.bytes},
          {"documents", state.documents}};
}

SplitState split_state_of(const Json& json) {
  return {count_in(json, "shards"), count_in(json, "open_tokens"), count_in(json, "tokens"),
          count_in(json, "bytes"), count_in(json, "documents")};
}

SplitWriter::SplitWriter(fs::path folder, bool validation, ShardFormat format,
                         std::int64_t shard_tokens)
    : folder_(std::move(folder)),
      validation_(validation),
      format_(format),
      shard_tokens_(format == ShardFormat::kLlmC ? shard_tokens
                                                 : std::numeric_limits<std::int64_t>::max()) {}

fs::path SplitWriter::path_of(std::int64_t shard) const {
  if (format_ == ShardFormat::kNanoGpt) return folder_ / (validation_ ? "val.bin" : "train.bin");
  char number[24];
  std::snprintf(number, sizeof number, "-%05lld.bin", static_cast<long long>(shard));
  return folder_ / ((validation_ ? "validation" : "train") + std::string(number));
}

void SplitWriter::add(std::span<const std::uint16_t> tokens) {
  while (!tokens.empty()) {
    if (!open_) open_.emplace(path_of(state_.shards), format_);
    const auto room = static_cast<std::size_t>(shard_tokens_ - open_->size());
    const auto part = tokens.first(std::min(room, tokens.size()));
    open_->add(part);
    state_.open_tokens = open_->size();
    state_.tokens += static_cast<std::int64_t>(part.size());
    tokens = tokens.subspan(part.size());
    if (open_->size() == shard_tokens_) close_shard();
  }
}

void SplitWriter::end_document(std::int64_t bytes) {
  ++state_.documents;
  state_.bytes += bytes;
}

void SplitWriter::sync() {
  if (open_) open_->sync();
}

void SplitWriter::close_shard() {
  if (!open_) return;
  open_->finish();
  open_.reset();
  finished_.push_back({"", std::make_unique<FileHash>(path_of(state_.shards))});
  if (finished_.size() > kHashers) {
    const auto& oldest = finished_[finished_.size() - 1 - kHashers].hash;
    if (oldest) oldest->hex();
  }
  ++state_.shards;
  state_.open_tokens = 0;
}

void SplitWriter::restore(const SplitState& state) {
  // A part of an open shard may not be in its file yet, so that it cannot be opened anew.
  const bool is_open = open_ && state.shards == state_.shards && state.open_tokens > 0;
  if (!is_open) open_.reset();
  for (std::int64_t shard = 0; shard < state.shards; ++shard)
    check_token_file(path_of(shard), format_, shard_tokens_);
  finished_.resize(static_cast<std::size_t>(state.shards));
  if (is_open) {
    open_->cut(state.open_tokens);
    state_ = state;
    return;
  }
  if (state.open_tokens == 0) fs::remove(path_of(state.shards));
  if (format_ == ShardFormat::kLlmC) {
    std::int64_t later = state.shards + 1;
    while (fs::remove(path_of(later))) ++later;
  }
  state_ = state;
  if (state.open_tokens > 0) open_.emplace(path_of(state.shards), format_, state.open_tokens);
}

std::vector<std::string> SplitWriter::sha256() const {
  std::vector<std::string> hashes;
  for (const Finished& shard : finished_) {
    hashes.push_back(shard.expected);
    try {
      if (shard.hash) hashes.back() = shard.hash->hex();
    } catch (const Interrupted&) {  // the shard is saved nevertheless
    }
  }
  return hashes;
}

void SplitWriter::expect(const std::vector<std::string>& sha256) {
  for (std::size_t i = 0; i < finished_.size(); ++i) finished_[i].expected = sha256[i];
}

Json SplitWriter::finish(const std::function<void(const fs::path&)>& hashing) {
  close_shard();
  Json shards = Json::array();
  std::int64_t rest = state_.tokens;
  for (std::int64_t shard = 0; shard < state_.shards; ++shard) {
    auto& [expected, hash] = finished_[static_cast<std::size_t>(shard)];
    if (!hash) hash = std::make_unique<FileHash>(path_of(shard));
    if (hashing)
      for (hashing(path_of(shard)); !hash->done(); hashing(path_of(shard)))
        std::this_thread::sleep_for(kHashPoll);
    check(expected.empty() || expected == hash->hex(), path_of(shard).string(),
          ": expected SHA-256 ", expected, ", got ", hash->hex(),
          ": it was changed after it was written; begin anew with --overwrite");
    const std::int64_t tokens = std::min(rest, shard_tokens_);
    rest -= tokens;
    shards.push_back({{"file", path_of(shard).filename().string()},
                      {"tokens", tokens},
                      {"sha256", hash->hex()}});
  }
  finished_.clear();
  return {{"documents", state_.documents},
          {"bytes", state_.bytes},
          {"tokens", state_.tokens},
          {"shards", shards}};
}

void check_token_file(const fs::path& path, ShardFormat format, std::int64_t tokens) {
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  const std::int64_t expected = file_bytes(format, tokens);
  check(!error && bytes == expected, path.string(), ": expected a finished shard of ", expected,
        " bytes, got ", error ? error.message() : cat(bytes), "; begin anew with --overwrite");
}

bool is_token_file(const std::string& name) {
  if (name == "train.bin" || name == "val.bin") return true;
  const std::size_t dash = name.find('-');
  if (dash == name.npos || !name.ends_with(".bin")) return false;
  const std::string split = name.substr(0, dash);
  const std::string number = name.substr(dash + 1, name.size() - dash - 5);
  return (split == "train" || split == "validation") && number.size() >= 5 &&
         (number.size() == 5 || number[0] != '0') &&
         std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace xsa::data
