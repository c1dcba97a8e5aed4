#include "xsa/data/verify.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/json.h"
#include "xsa/base/parallel.h"
#include "xsa/base/parse_json.h"
#include "xsa/base/system.h"
#include "xsa/data/bar.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr std::int64_t kMostHashers = 8;  // more wait for the disk

fs::path real(const fs::path& path) {
  std::error_code ignored;
  const fs::path found = fs::weakly_canonical(path, ignored);
  return found.empty() ? path : found;
}

Json to_json(const FileState& state, const std::string& sha256) {
  return {{"bytes", state.bytes},
          {"modified_ns", state.modified_ns},
          {"changed_ns", state.changed_ns},
          {"inode", state.inode},
          {"sha256", sha256}};
}

/// What a record knows; a damaged one knows nothing.
Json read_record(const fs::path& record) {
  try {
    const Json json = try_parse_json(read_file(record));
    if (json.is_object() && json.value("version", Json()) == kVersion && json.contains("files") &&
        json["files"].is_object())
      return json["files"];
  } catch (const Error&) {
  }
  return Json::object();
}

/// The records that may know a shard: beside it, and in the cache.
class Memory {
 public:
  explicit Memory(const fs::path& cache) : cache_(cache / kVerifiedName) {}

  bool knows(const Shard& shard) {
    const fs::path path = real(shard.path());
    return recalls(shard, beside(path), path.filename().string()) ||
           recalls(shard, cache_, path.string());
  }

  void note(const Shard& shard) {
    const fs::path path = real(shard.path());
    const FileState state = shard.verified_state();
    const Json entry = to_json(state, shard.verify());
    if (shard.verified_state() != state) return;  // it changed in between
    read(beside(path))[path.filename().string()] = entry;
    new_[beside(path)].emplace_back(path.string(), entry);
  }

  /// Where it cannot, the shards are hashed again the next time.
  void save() {
    for (const auto& [record, entries] : new_) {
      if (write(record)) continue;
      for (const auto& [name, entry] : entries) read(cache_)[name] = entry;
      write(cache_);
    }
  }

 private:
  static fs::path beside(const fs::path& shard) { return shard.parent_path() / kVerifiedName; }

  Json& read(const fs::path& record) {
    const auto [found, is_new] = records_.emplace(record, Json());
    if (is_new) found->second = read_record(record);
    return found->second;
  }

  bool recalls(const Shard& shard, const fs::path& record, const std::string& name) {
    const Json& files = read(record);
    const auto found = files.find(name);
    if (found == files.end()) return false;
    try {
      const auto number = [&](const char* key) { return found->at(key).get<std::int64_t>(); };
      const FileState state{number("bytes"), number("modified_ns"), number("changed_ns"),
                            found->at("inode").get<std::uint64_t>()};
      return shard.recall(state, found->at("sha256").get<std::string>());
    } catch (const Json::exception&) {
      return false;
    }
  }

  bool write(const fs::path& record) {
    try {
      write_json_file(record, {{"version", kVersion}, {"files", read(record)}});
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  fs::path cache_;
  std::map<fs::path, Json> records_;
  std::map<fs::path, std::vector<std::pair<std::string, Json>>> new_;
};

}  // namespace

void verify_shards(const std::vector<const TokenStream*>& streams, const fs::path& cache) {
  Memory memory(cache);
  std::vector<const Shard*> unknown;
  std::int64_t bytes = 0;
  for (const TokenStream* stream : streams)
    for (const Shard& shard : stream->shards()) {
      if (shard.bytes() == 0 || memory.knows(shard)) continue;
      unknown.push_back(&shard);
      bytes += shard.bytes();
    }
  if (unknown.empty()) return;
  Bar bar("checking data", bytes);
  std::mutex mutex;
  const auto progress = [&](std::int64_t more) {
    const std::lock_guard lock(mutex);
    bar.advance(more);
  };
  const std::int64_t workers = std::min(default_threads(), kMostHashers);
  const auto remember = [&] {
    for (const Shard* shard : unknown)
      if (shard->verified_state().bytes > 0) memory.note(*shard);
    memory.save();
  };
  try {
    threads(workers).run(static_cast<std::int64_t>(unknown.size()),
                         [&](std::int64_t i, std::int64_t) {
                           unknown[static_cast<std::size_t>(i)]->verify(progress);
                         });
  } catch (...) {
    remember();  // those that are as they should be
    throw;
  }
  remember();
}

}  // namespace xsa::data
