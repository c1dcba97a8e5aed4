// Token shards: llm.c's format, 256 little-endian int32 of header (magic 20240520, version 1, token
// count, rest 0), then the tokens as uint16; or nanoGPT's, the tokens alone. Read row by row, not
// mapped: what is wrong with a file is an error and never a signal.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
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

/// One shard; throws Error naming file, field, expected and got, also for a file that is shorter or
/// longer than its header says.
class Shard {
 public:
  explicit Shard(const std::filesystem::path& path, ShardFormat format = ShardFormat::kLlmC);
  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t size() const { return size_; }
  /// Where a token lies in the file, in bytes.
  std::int64_t offset_of(std::int64_t token) const { return begin_ + 2 * token; }
  /// Copies tokens [begin, begin + out.size()), which must lie within the shard.
  void read(std::int64_t begin, std::span<std::uint16_t> out) const;
  /// Lets the system fetch these tokens meanwhile.
  void will_need(std::int64_t begin, std::int64_t count) const;

 private:
  RandomAccessFile file_;
  std::int64_t begin_ = 0, size_ = 0;
};

/// Whether the file begins as llm.c's shards do.
bool is_llm_c_shard(const std::filesystem::path& path);

inline constexpr std::int64_t kAnyVocabulary = 1 << 16;

/// Several shards as one sequence of tokens.
class TokenStream {
 public:
  /// Ids must be below `vocabulary`, which is checked as they are read.
  explicit TokenStream(const std::vector<std::filesystem::path>& shards,
                       ShardFormat format = ShardFormat::kLlmC,
                       std::int64_t vocabulary = kAnyVocabulary);
  std::int64_t size() const { return size_; }
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
