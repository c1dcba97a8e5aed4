// Token shards in llm.c's format: 256 little-endian int32 of header (magic 20240520, version 1,
// token count, rest 0), then the tokens as uint16. Read by mmap, every header field checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "xsa/base/file.h"
#include "xsa/text/tokenizer.h"

namespace xsa::data {

/// Writes aside, syncs, renames. Throws Error for an id above 65535.
void write_shard(const std::filesystem::path& path, std::span<const text::Token> tokens);

/// The same for tokens that come in pieces. Without finish() nothing remains.
class ShardWriter {
 public:
  explicit ShardWriter(const std::filesystem::path& path);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  void add(std::span<const text::Token> tokens);
  std::int64_t size() const { return size_; }
  void finish();

 private:
  class File;
  std::filesystem::path path_;
  std::unique_ptr<File> file_;
  std::vector<std::uint16_t> buffer_;
  std::int64_t size_ = 0;
};

/// One shard; throws Error naming file, field, expected and got, also for a file that is shorter or
/// longer than its header says.
class Shard {
 public:
  explicit Shard(const std::filesystem::path& path);
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  std::span<const std::uint16_t> tokens() const { return tokens_; }

 private:
  MappedFile file_;
  std::span<const std::uint16_t> tokens_;
};

/// Several shards as one sequence of tokens.
class TokenStream {
 public:
  explicit TokenStream(const std::vector<std::filesystem::path>& shards);
  std::int64_t size() const { return size_; }
  /// Copies tokens [begin, begin + out.size()) as int64 (an embedding's index type).
  void read(std::int64_t begin, std::span<std::int64_t> out) const;

 private:
  std::vector<Shard> shards_;
  std::vector<std::int64_t> begins_;
  std::int64_t size_ = 0;
};

}  // namespace xsa::data
