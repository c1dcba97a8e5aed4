#include "xsa/data/dataset.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "xsa/base/hash.h"
#include "xsa/data/prepare.h"
#include "xsa/data/ready_shards.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

/// Of shards and manifest together: a change here makes new folders.
constexpr int kFormat = 2;

/// One process at a time looks at and makes a folder of the cache; a killed one's lock is gone with
/// it. A cache that may only be read needs no lock: nobody can change it.
class Lock {
 public:
  explicit Lock(const fs::path& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    problem_ = fd_ < 0 ? std::strerror(errno) : "";
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0)
      check(errno == EINTR, path.string(), ": cannot lock: ", std::strerror(errno),
            "; put the cache (data.cache) on a local disk");
  }
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const { return fd_ >= 0; }
  const std::string& problem() const { return problem_; }

 private:
  int fd_;
  std::string problem_;
};

/// Readable, and another for each source, tokenizer and split.
std::string folder_name(const DataConfig& config, const Source& source,
                        const text::Tokenizer& tokenizer) {
  const std::string key = Json({{"format", kFormat},
                                {"source", source.key},
                                {"tokenizer", tokenizer.identity()},
                                {"validation_fraction", config.validation_fraction}})
                              .dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string name = source.name.substr(0, 64);
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-' && letter != '.')
      letter = '_';
  return name + "-" + sha256(std::as_bytes(std::span(key))).substr(0, 12);
}

/// The names beside a cache folder start with a dot, so that they are not read as text.
fs::path beside(const fs::path& folder, const char* ending) {
  return folder.parent_path() / ("." + folder.filename().string() + ending);
}

/// Throws Json's exceptions, which open_dataset names the file and the remedy for.
Json read_manifest(const fs::path& folder) {
  return Json::parse(read_file(folder / kManifestName));
}

/// Removes what a killed process left.
void tidy(const fs::path& folder) {
  for (const char* ending : {".partial", ".old"}) fs::remove_all(beside(folder, ending));
}

/// Makes the folder aside and renames it. A kill leaves the old folder, none, or the new one.
void make(const Source& source, const DataConfig& config, const text::Tokenizer& tokenizer,
          const fs::path& folder) {
  const fs::path aside = beside(folder, ".partial"), old = beside(folder, ".old");
  fs::create_directory(aside);
  try {
    prepare(source, config, tokenizer, aside);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw;
  }
  if (fs::exists(folder)) fs::rename(folder, old);
  fs::rename(aside, folder);
  sync_path(folder.parent_path());
  fs::remove_all(old);
}

/// Whether the folder holds the source as it is now.
bool is_ready(const fs::path& folder, const Source& source, bool may_write) {
  if (!fs::exists(folder)) return false;
  Json manifest = read_manifest(folder);
  bool times_differ = false;
  if (!is_current(manifest, source, times_differ)) return false;
  if (times_differ && may_write) {
    for (std::size_t i = 0; i < source.files.size(); ++i)
      manifest["sources"][i]["modified_ns"] = source.files[i].modified_ns;
    write_json_file(folder / kManifestName, manifest);
  }
  return true;
}

Dataset open_folder(const fs::path& folder, std::unique_ptr<text::Tokenizer> tokenizer) {
  Json manifest = read_manifest(folder);
  auto [train, validation] =
      open_splits(folder, manifest, tokenizer->vocabulary_size(), folder.parent_path());
  return {std::move(train), std::move(validation), std::move(tokenizer), std::move(manifest)};
}

/// What lies where data is expected is not passed over in silence.
void say_passed_over(const std::string& source, const std::vector<std::string>& names) {
  if (names.empty()) return;
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += cat(", and ", names.size() - kShown, " more");
  std::fprintf(stderr, "xsa: note: %s: not read: %s\n", source.c_str(), text.c_str());
}

/// Through the cache.
Dataset open_text(const DataConfig& config, std::unique_ptr<text::Tokenizer> tokenizer) {
  const Source source = find_source(config);
  say_passed_over(config.source, source.passed_over);
  const fs::path folder = fs::path(config.cache) / folder_name(config, source, *tokenizer);
  try {
    std::error_code ignored;  // a cache that cannot be made shows in the next steps
    fs::create_directories(config.cache, ignored);
    const Lock lock(beside(folder, ".lock"));
    if (lock.held()) tidy(folder);
    if (!is_ready(folder, source, lock.held())) {
      check(lock.held(), config.cache, ": cannot write to the data cache: ", lock.problem(),
            "; name another folder with data.cache");
      make(source, config, *tokenizer, folder);
    }
    return open_folder(folder, std::move(tokenizer));
  } catch (const Json::exception& error) {
    throw Error(cat((folder / kManifestName).string(), ": not a manifest of data: ", error.what(),
                    "; remove the folder and it is made again"));
  } catch (const fs::filesystem_error& error) {
    throw Error(cat(error.path1().string(), ": cannot use the data cache: ", error.code().message(),
                    "; name another folder with data.cache"));
  }
}

}  // namespace

Dataset open_dataset(const DataConfig& config) {
  auto tokenizer = text::make_tokenizer(config.tokenizer);
  const auto ready = find_ready_shards(config.source);
  if (ready) say_passed_over(config.source, ready->passed_over);
  Dataset dataset = ready ? open_ready_shards(*ready, std::move(tokenizer), config.cache)
                          : open_text(config, std::move(tokenizer));
  if (config.documents == "packed")
    for (Split* split : {&dataset.train, &dataset.validation})
      split->document_opener = dataset.tokenizer->end_of_text();
  return dataset;
}

std::string Dataset::sha256() const {
  std::string hashes;
  for (const Split* split : {&train, &validation})
    for (const Shard& shard : split->tokens.shards()) hashes += shard.verify() + " ";
  return xsa::sha256(std::as_bytes(std::span(hashes)));
}

}  // namespace xsa::data
