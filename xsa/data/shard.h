// Token shards: llm.c's format, 256 little-endian int32 of header (magic 20240520, version 1, token
// count, rest 0), then the tokens as uint16; or nanoGPT's, the tokens alone. Read row by row, not
// mapped: what is wrong with a file is an error and never a signal.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xsa/base/file.h"
#include "xsa/text/tokenizer.h"

namespace xsa::data {

enum class ShardFormat { kLlmC, kNanoGpt };

using ShardHeader = std::array<std::int32_t, 256>;
/// Throws Error for more tokens than its int32 can say.
ShardHeader shard_header(std::int64_t tokens);

/// A whole shard at once: written aside, synced, renamed. Throws Error for an id above 65535.
void write_shard(const std::filesystem::path& path, std::span<const text::Token> tokens);

/// One shard, which gives no byte that its SHA-256 does not vouch for. Throws Error naming file,
/// field, expected and got, also for a file that is shorter or longer than its header says.
class Shard {
 public:
  /// `sha256`: of the file, as its manifest says; "" where nobody knows it.
  explicit Shard(const std::filesystem::path& path, ShardFormat format = ShardFormat::kLlmC,
                 std::string sha256 = "");
  ~Shard();
  Shard(Shard&& other) noexcept;
  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t size() const { return size_; }
  std::int64_t bytes() const { return file_.size(); }
  /// Where a token lies in the file, in bytes.
  std::int64_t offset_of(std::int64_t token) const { return begin_ + 2 * token; }
  /// Copies tokens [begin, begin + out.size()), which must lie within the shard. The whole file is
  /// hashed before its first token is given, and again where its state has changed since. Throws
  /// Error where the hash is another than before, or than the manifest's.
  void read(std::int64_t begin, std::span<std::uint16_t> out) const;
  /// Lets the system fetch these tokens meanwhile.
  void will_need(std::int64_t begin, std::int64_t count) const;

  /// Calls `progress` with the bytes that were hashed, piece by piece.
  using HashProgress = std::function<void(std::int64_t bytes)>;
  /// The file's SHA-256, which read() holds it to. Throws as read(); Interrupted when asked to
  /// stop.
  std::string verify(const HashProgress& progress = {}) const;
  /// The state that its hash was found in; bytes = 0 as long as it is not known.
  FileState verified_state() const;
  /// An earlier process found this hash in this state. Whether that is the file as it is, and the
  /// hash the expected one; if so, nothing is hashed until the state changes.
  bool recall(const FileState& state, const std::string& sha256) const;

 private:
  struct Verified;
  void hash_anew(Verified& verified, const HashProgress& progress) const;

  RandomAccessFile file_;
  std::int64_t begin_ = 0, size_ = 0;
  std::unique_ptr<Verified> verified_;
};

/// Whether the file begins as llm.c's shards do.
bool is_llm_c_shard(const std::filesystem::path& path);
/// What it begins with instead: "magic 20240801, ...", "an empty file", ...
std::string no_llm_c_shard(const std::filesystem::path& path);

inline constexpr std::int64_t kAnyVocabulary = 1 << 16;

/// Several shards as one sequence of tokens.
class TokenStream {
 public:
  /// Ids must be below `vocabulary`, which is checked as they are read. `sha256`: of each shard, as
  /// Shard's; may be empty.
  explicit TokenStream(const std::vector<std::filesystem::path>& shards,
                       ShardFormat format = ShardFormat::kLlmC,
                       std::int64_t vocabulary = kAnyVocabulary,
                       const std::vector<std::string>& sha256 = {});
  std::int64_t size() const { return size_; }
  const std::vector<Shard>& shards() const { return shards_; }
  /// Copies tokens [begin, begin + out.size()) as int64 (an embedding's index type). Throws Error
  /// naming file and offset for an id beyond the vocabulary.
  void read(std::int64_t begin, std::span<std::int64_t> out) const;
  /// Lets the system fetch tokens that will be read soon.
  void will_need(std::int64_t begin, std::int64_t count) const;

 private:
  /// Calls use(shard, begin, count) for each shard's part of the tokens [begin, begin + count).
  template <class Use>
  void for_each_part(std::int64_t begin, std::int64_t count, const Use& use) const;

  std::vector<Shard> shards_;
  std::vector<std::int64_t> begins_;
  std::int64_t size_ = 0, vocabulary_;
};

}  // namespace xsa::data
