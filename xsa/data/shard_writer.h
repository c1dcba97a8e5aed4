// Token files as they grow: they may be cut back to an earlier state, which is how a broken run
// continues and how a document that turns out bad is taken back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xsa/base/hash.h"
#include "xsa/base/json.h"
#include "xsa/data/shard.h"

namespace xsa::data {

/// One token file. It has its name from the start: a reader refuses it before finish(), or does not
/// look (nanoGPT's has no header), so the folder's manifest must come last.
class ShardWriter {
 public:
  /// Continues a file behind its first `tokens` tokens; what follows is cut off.
  ShardWriter(const std::filesystem::path& path, ShardFormat format, std::int64_t tokens = 0);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  /// Throws Error naming the path and the system's reason, e.g. a full disk.
  void add(std::span<const std::uint16_t> tokens);
  std::int64_t size() const { return size_; }
  /// Keeps the first `tokens` of size(), written yet or not. Mends what a failed write left.
  void cut(std::int64_t tokens);
  /// All that was added is on the disk.
  void sync();
  /// Writes the header and syncs.
  void finish();

 private:
  void flush();
  void write(const void* data, std::size_t size);
  [[noreturn]] void fail(std::string_view action) const;

  std::filesystem::path path_;
  ShardFormat format_;
  int fd_;
  std::int64_t size_;     // in tokens, of which
  std::int64_t written_;  // are in the file and the others in buffer_
  bool broken_ = false;
  std::vector<std::uint16_t> buffer_;
};

/// How far a split has come.
struct SplitState {
  std::int64_t shards = 0;       // finished ones
  std::int64_t open_tokens = 0;  // in the one after
  std::int64_t tokens = 0, bytes = 0, documents = 0;
};
Json to_json(const SplitState& state);
SplitState split_state_of(const Json& json);

/// One split's tokens on their way into files: train-00000.bin, ... of limited size, or nanoGPT's
/// train.bin and val.bin.
class SplitWriter {
 public:
  /// `validation`: which of the two splits.
  SplitWriter(std::filesystem::path folder, bool validation, ShardFormat format,
              std::int64_t shard_tokens);

  void add(std::span<const std::uint16_t> tokens);
  /// A document of so many bytes is complete.
  void end_document(std::int64_t bytes);

  const SplitState& state() const { return state_; }
  void sync();
  /// Goes back to an earlier state, of this object or of another process: files are cut and
  /// removed. Throws Error where a finished shard is missing or has another size.
  void restore(const SplitState& state);

  /// Of the finished shards, waiting for it; "" of one that a signal kept from being hashed.
  std::vector<std::string> sha256() const;
  /// What sha256() was when another process left the restored state: one for each finished shard.
  void expect(const std::vector<std::string>& sha256);

  /// The manifest's entry: {"documents", "bytes", "tokens", "shards": [{"file", "tokens",
  /// "sha256"}]}. Calls `hashing` with each file, again and again while its hash is not done.
  /// Throws Error for a shard that has another hash than was expected.
  Json finish(const std::function<void(const std::filesystem::path&)>& hashing = {});

 private:
  std::filesystem::path path_of(std::int64_t shard) const;
  void close_shard();

  std::filesystem::path folder_;
  bool validation_;
  ShardFormat format_;
  std::int64_t shard_tokens_;
  SplitState state_;
  std::optional<ShardWriter> open_;
  struct Finished {
    std::string expected;            // "": not known
    std::unique_ptr<FileHash> hash;  // null: not begun
  };
  std::vector<Finished> finished_;  // shards
};

/// Throws Error where a finished token file is missing or has another size.
void check_token_file(const std::filesystem::path& path, ShardFormat format, std::int64_t tokens);

/// Whether SplitWriter may have written a file of this name.
bool is_token_file(const std::string& name);

}  // namespace xsa::data
