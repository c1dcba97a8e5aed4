#include "xsa/tasks/find_records.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/json.h"
#include "xsa/data/records.h"

namespace xsa::tasks {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

/// Best first: where a place has several kinds, the first kind alone is read.
constexpr const char* kEndings[] = {".parquet", ".arrow", ".jsonl", ".jsonl.gz", ".jsonl.zst"};
constexpr char kEndingsText[] = "parquet, arrow, jsonl, jsonl.gz or jsonl.zst";

/// Files and folders directly in `folder`, sorted; none where there is no such folder.
Paths entries(const fs::path& folder) {
  Paths found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    found.push_back(entry->path());
  check(error != std::errc::permission_denied, folder.string(), ": cannot read: ", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

Paths subfolders(const fs::path& folder) {
  Paths found = entries(folder);
  std::erase_if(found, [](const fs::path& path) { return !fs::is_directory(path); });
  return found;
}

/// The files in `folder` of the first kind of which there is one whose name without ending `fits`.
/// cache-*.arrow are what the datasets library leaves beside a data set that it has worked on.
Paths files_of_one_kind(const fs::path& folder,
                        const std::function<bool(const std::string& stem)>& fits) {
  const Paths all = entries(folder);
  for (const std::string ending : kEndings) {
    Paths found;
    for (const fs::path& path : all) {
      const std::string name = path.filename().string();
      if (!name.ends_with(ending) || name.starts_with("cache-") ||
          !fits(name.substr(0, name.size() - ending.size())))
        continue;
      check(fs::exists(path), path.string(),
            ": expected a file of records, got a link to one that is gone; fetch it again");
      if (fs::is_regular_file(path)) found.push_back(path);
    }
    if (!found.empty()) return found;
  }
  return {};
}

/// Throws Error unless names that count ("-00001-of-00003", perhaps with a hash behind) are all
/// there.
void check_shards(const Paths& files) {
  const std::string name = files.front().filename().string();
  const std::size_t of = name.rfind("-of-");
  if (of == std::string::npos) return;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(name.data() + of + 4, name.data() + name.size(), count);
  check(error != std::errc() || count == files.size(), files.front().string(), ": expected ", count,
        " shards by its name, there are ", files.size(), "; fetch all, and those alone");
}

bool is_shard_of(const std::string& stem, const std::string& name) {
  return stem == name || stem.starts_with(name + "-0");
}

/// Records of `split` in one folder: SPLIT.EXT or SPLIT-0….EXT, a folder SPLIT, NAME-SPLIT.EXT or
/// NAME_SPLIT.EXT.
Paths split_files(const fs::path& folder, const std::string& split) {
  Paths found =
      files_of_one_kind(folder, [&](const std::string& stem) { return is_shard_of(stem, split); });
  if (found.empty())
    found = files_of_one_kind(folder / split, [](const std::string&) { return true; });
  if (found.empty())
    found = files_of_one_kind(folder, [&](const std::string& stem) {
      const std::size_t place = std::min(stem.find("-" + split), stem.find("_" + split));
      return place != std::string::npos && is_shard_of(stem.substr(place + 1), split);
    });
  return found;
}

/// What Dataset.save_to_disk of one split leaves, if it is this split.
Paths saved_files(const fs::path& folder, const std::string& split) {
  const fs::path state = folder / "state.json";
  if (fs::exists(state)) {
    const Json json = read_json_file(state);
    if (json.is_object() && json.value("_split", Json()).is_string() && json["_split"] != split)
      return {};
  }
  return files_of_one_kind(folder,
                           [](const std::string& stem) { return stem.starts_with("data-0"); });
}

/// A data set's folder. `own`: it holds this task's records alone, so its configuration need not
/// have a folder.
struct Home {
  fs::path path;
  bool own = false;
};

std::string last_part(const std::string& dataset) { return dataset.substr(dataset.rfind('/') + 1); }

/// OWNER/NAME with another text between the two; NAME alone as it is.
std::string joined(std::string dataset, const std::string& by) {
  const std::size_t slash = dataset.find('/');
  return slash == std::string::npos ? dataset : dataset.replace(slash, 1, by);
}

/// The snapshot in the hub's cache that refs/main names, else the last by name.
fs::path snapshot(const fs::path& cache) {
  const fs::path main = cache / "refs" / "main";
  if (fs::exists(main)) {
    std::string revision = read_file(main);
    while (!revision.empty() && std::isspace(static_cast<unsigned char>(revision.back())))
      revision.pop_back();
    if (fs::is_directory(cache / "snapshots" / revision)) return cache / "snapshots" / revision;
  }
  const Paths all = subfolders(cache / "snapshots");
  return all.empty() ? cache / "snapshots" : all.back();
}

std::vector<Home> homes(const Task& task, const fs::path& folder) {
  std::vector<Home> found = {{folder / task.name, true}};
  std::vector<std::string> datasets = {task.dataset};
  datasets.insert(datasets.end(), task.aliases.begin(), task.aliases.end());
  for (const std::string& dataset : datasets) {
    const bool own = last_part(dataset) == task.name;
    for (const fs::path& path : {folder / dataset, folder / last_part(dataset),
                                 snapshot(folder / ("datasets--" + joined(dataset, "--"))),
                                 folder / joined(dataset, "___")})
      if (path != found.front().path && path != found.back().path) found.push_back({path, own});
  }
  return found;
}

/// Whether another configuration of the data set has other records under the same names.
bool config_matters(const Task& task) {
  return task.config != "" && task.config != "default" && last_part(task.dataset) != task.name;
}

/// The folders of a home that may hold the split's files.
Paths places(const Task& task, const Home& home) {
  Paths found;
  if (!task.config.empty()) found.push_back(home.path / task.config);
  if (home.own || !config_matters(task)) {
    found.push_back(home.path);
    for (const char* name : {"data", "default", "plain_text", "none"})
      if (name != task.config) found.push_back(home.path / name);
  }
  const Paths direct = found;
  for (const fs::path& place : direct)  // the datasets library's cache: CONFIG/VERSION/HASH
    for (const fs::path& version : subfolders(place))
      if (std::isdigit(static_cast<unsigned char>(version.filename().string().front())))
        for (const fs::path& hash : subfolders(version)) found.push_back(hash);
  return found;
}

Paths files_of_home(const Task& task, const Home& home, const std::string& split) {
  if (!fs::is_directory(home.path)) return {};
  const Paths all = places(task, home);
  for (const fs::path& place : all)
    if (const Paths found = split_files(place, split); !found.empty()) return found;
  if (!home.own) return {};
  for (const fs::path& place : all)
    if (const Paths found = saved_files(place, split); !found.empty()) return found;
  return {};
}

/// TASK-SPLIT.EXT, TASK_SPLIT.EXT, TASK.EXT beside one another.
Paths lone_files(const Task& task, const fs::path& folder, const std::string& split) {
  for (const std::string& name : {task.name + "-" + split, task.name + "_" + split, task.name}) {
    const Paths found =
        files_of_one_kind(folder, [&](const std::string& stem) { return is_shard_of(stem, name); });
    if (!found.empty()) return found;
  }
  return {};
}

/// Every place that was tried, as the body of an error.
std::string tried(const Task& task, const fs::path& folder) {
  std::string all, there;
  for (const Home& home : homes(task, folder)) {
    const std::string name = home.path.lexically_relative(folder).string() + "/";
    all += (all.empty() ? "" : ", ") + name;
    if (fs::is_directory(home.path)) there += (there.empty() ? "" : ", ") + name;
  }
  const std::string beside = "the folder itself, data/, default/, plain_text/, none/";
  const std::string config = task.config.empty() ? "" : task.config + "/, ";
  const std::string& split = task.split;
  return cat(
      "\n  folders ", all, there.empty() ? " (there is none)" : " (there: " + there + ")",
      "\n  in each: ", config, config_matters(task) ? "in the first also: " : "", beside,
      "\n  there: ", split, ".EXT, ", split, "-*.EXT, ", split, "/*.EXT, *-", split, ".EXT, *_",
      split, ".EXT; and the same with validation", "\n  files ", task.name, "-", split, ".EXT, ",
      task.name, "_", split, ".EXT, ", task.name, ".EXT", "\n  EXT: ", kEndingsText,
      "\nxsa eval --help says where to fetch them; or name them: --data ", task.name, "=PATH");
}

Paths find_split(const Task& task, const fs::path& folder, const std::string& split) {
  for (const Home& home : homes(task, folder))
    if (const Paths found = files_of_home(task, home, split); !found.empty()) return found;
  return lone_files(task, folder, split);
}

RecordFiles checked(Paths files, const std::string& split) {
  check_shards(files);
  return {std::move(files), split};
}

}  // namespace

RecordFiles find_records(const Task& task, const fs::path& folder) {
  check(fs::is_directory(folder), "--data: ", folder.string(), " is no folder");
  for (const std::string& split : {task.split, std::string("validation")})
    if (Paths found = find_split(task, folder, split); !found.empty())
      return checked(std::move(found), split);
  throw Error(cat(task.name, ": no records of ", task.dataset,
                  task.config.empty() ? "" : " (" + task.config + ")", ", split ", task.split,
                  ", in ", folder.string(), "; tried", tried(task, folder)));
}

RecordFiles named_records(const Task& task, const fs::path& path) {
  if (!fs::is_directory(path)) {
    check(fs::exists(path), "--data: ", path.string(), " does not exist");
    check(data::is_record_file(path), "--data: ", path.string(), ": expected a file of records (",
          kEndingsText, ")");
    return {{path}, ""};
  }
  const Home home = {path, true};
  for (const std::string& split : {task.split, std::string("validation")})
    if (Paths found = files_of_home(task, home, split); !found.empty())
      return checked(std::move(found), split);
  Paths all = files_of_one_kind(path, [](const std::string&) { return true; });
  check(!all.empty(), task.name, ": expected files of records (", kEndingsText, ") in ",
        path.string(), ", found none");
  check(all.size() == 1 || all.front().string().find("-of-") != std::string::npos, task.name, ": ",
        path.string(), " holds ", all.size(), " files and none is called ", task.split,
        "; name the one that is meant");
  return checked(std::move(all), "");
}

}  // namespace xsa::tasks
