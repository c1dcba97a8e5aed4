#include "xsa/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/hash.h"
#include "xsa/checkpoint/hashed_file.h"

namespace xsa::checkpoint {

namespace fs = std::filesystem;

/// What a Reader holds.
struct Opened {
  fs::path folder;
  std::int64_t step;
  std::string model_sha256;
  Json state, recipe;
  SafetensorsFile model, optimizer;
};

namespace {

constexpr char kFormat[] = "xsa-checkpoint";
constexpr std::int64_t kVersion = 1;
constexpr char kModel[] = "model.safetensors", kOptimizer[] = "optimizer.safetensors",
               kState[] = "state.json", kRecipe[] = "recipe.json";
constexpr std::array kFiles = {kModel, kOptimizer, kState, kRecipe};
constexpr char kPartial[] = ".partial";

// ------------------------------------------------------------------------------------------------
// Saving

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  check(!error, from.string(), ": cannot rename to ", to.string(), ": ", error.message());
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  check(!error, path.string(), ": cannot remove: ", error.message());
}

/// Removes what a killed save or a killed removal has left.
void remove_leftovers(const fs::path& root) {
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kPartial) &&
        (name.starts_with(kStepPrefix) || name.starts_with(kLatest) || name.starts_with(kBest)))
      leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) remove_tree(path);
}

/// Renamed first: a kill in between leaves no half checkpoint under a whole one's name.
void remove_checkpoint(const fs::path& folder) {
  const fs::path aside = folder.string() + kPartial;
  move(folder, aside);
  remove_tree(aside);
}

/// Puts `aside` in the place of `folder`; a former one of the same step is exchanged in one step.
void put_in_place(const fs::path& aside, const fs::path& folder) {
  if (!is_there(folder)) return move(aside, folder);
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    remove_tree(aside);
    return;
  }
  // A file system without exchange: between these two renames the step has no checkpoint.
  check(errno == EINVAL || errno == ENOSYS || errno == ENOTSUP, folder.string(),
        ": cannot replace: ", std::strerror(errno));
  const fs::path former = folder.string() + ".former" + kPartial;
  move(folder, former);
  move(aside, folder);
  remove_tree(former);
}

/// What manifest.json holds.
struct Manifest {
  std::int64_t step = 0;
  std::array<HashedFile::Written, kFiles.size()> files;  // in the order of kFiles
};

Json to_json(const Manifest& manifest) {
  Json files = Json::object();
  for (std::size_t i = 0; i < kFiles.size(); ++i)
    files[kFiles[i]] = {{"bytes", manifest.files[i].bytes}, {"sha256", manifest.files[i].sha256}};
  return {{"format", kFormat}, {"version", kVersion}, {"step", manifest.step}, {"files", files}};
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The file's text. Its own hash binds step and version, as its other hashes bind the files.
std::string text_of(const Manifest& manifest) {
  Json json = to_json(manifest);
  const std::string unsigned_text = json.dump();
  json["sha256"] = sha256(std::as_bytes(std::span(unsigned_text)));
  return text_of(json);
}

HashedFile::Written write_text(const fs::path& path, const std::string& text) {
  HashedFile file(path);
  file.write(text);
  return file.finish();
}

HashedFile::Written write_tensors(const fs::path& path, const std::vector<TensorData>& tensors) {
  const std::string hash = write_safetensors(path, tensors);
  return {static_cast<std::int64_t>(fs::file_size(path)), hash};
}

void write_contents(const fs::path& folder, const Contents& contents) {
  const Manifest manifest{contents.step,
                          {write_tensors(folder / kModel, contents.model),
                           write_tensors(folder / kOptimizer, contents.optimizer),
                           write_text(folder / kState, text_of(contents.state)),
                           write_text(folder / kRecipe, text_of(contents.recipe))}};
  write_text(folder / kManifest, text_of(manifest));
  sync_path(folder);
}

/// Keeps `step`, the keep - 1 next ones below it, and the best.
void prune(const fs::path& root, std::int64_t step, std::int64_t keep,
           std::optional<std::int64_t> best) {
  const std::vector<std::int64_t> steps = newest_first(root, step);
  for (std::size_t i = static_cast<std::size_t>(keep); i < steps.size(); ++i)
    if (steps[i] != best) remove_checkpoint(root / folder_name(steps[i]));
}

/// BEST names the checkpoint of `step` or, where that is not there, is gone.
void mark_best(const fs::path& root, std::optional<std::int64_t> step) {
  const fs::path mark = root / kBest;
  if (step && is_there(root / folder_name(*step)))
    return atomic_write(mark, folder_name(*step) + "\n");
  std::error_code error;
  fs::remove(mark, error);
  check(!error, mark.string(), ": cannot remove: ", error.message());
}

// ------------------------------------------------------------------------------------------------
// Reading

template <class T>
T field(const Json& json, const char* key, const fs::path& manifest) {
  try {
    return json.at(key).get<T>();
  } catch (const Json::exception&) {
    throw Error(cat(manifest.string(), ": expected a checkpoint's manifest with '", key,
                    "', which is missing or of another type"));
  }
}

Manifest read_manifest(const fs::path& path) {
  const Json json = read_json_file(path);
  check(field<std::string>(json, "format", path) == kFormat, path.string(),
        ": expected the format '", kFormat, "'");
  const auto version = field<std::int64_t>(json, "version", path);
  check(version == kVersion, path.string(), ": expected version ", kVersion, ", got ", version,
        ": another release of xsa wrote it");
  Manifest manifest{.step = field<std::int64_t>(json, "step", path)};
  check(json.contains("files"), path.string(), ": expected a manifest with 'files'");
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    const Json& files = json["files"];
    check(files.is_object() && files.contains(kFiles[i]), path.string(), ": expected ", kFiles[i],
          " among its files");
    manifest.files[i] = {field<std::int64_t>(files[kFiles[i]], "bytes", path),
                         field<std::string>(files[kFiles[i]], "sha256", path)};
  }
  check(read_file(path) == text_of(manifest), path.string(),
        ": its own SHA-256 or its form does not fit: it was changed after it was saved");
  return manifest;
}

void verify(const fs::path& path, const HashedFile::Written& expected) {
  const MappedFile file(path);
  const auto bytes = static_cast<std::int64_t>(file.bytes().size());
  check(bytes == expected.bytes, path.string(), ": expected ", expected.bytes, " bytes, got ",
        bytes);
  const std::string hash = sha256(file.bytes());
  check(hash == expected.sha256, path.string(), ": expected SHA-256 ", expected.sha256, ", got ",
        hash, ": it was changed after it was saved");
}

Opened open(const fs::path& folder) {
  const Manifest manifest = read_manifest(folder / kManifest);
  for (std::size_t i = 0; i < kFiles.size(); ++i) verify(folder / kFiles[i], manifest.files[i]);
  return {folder,
          manifest.step,
          manifest.files[0].sha256,
          read_json_file(folder / kState),
          read_json_file(folder / kRecipe),
          SafetensorsFile(folder / kModel),
          SafetensorsFile(folder / kOptimizer)};
}

fs::path folder_of(const fs::path& path) {
  if (is_checkpoint(path)) return path;
  check(is_there(path), path.string(),
        ": expected a run's folder, its checkpoints or one of these; there is no such folder");
  const fs::path root = root_of(path);
  const std::optional<fs::path> folder = latest(root);
  check(folder.has_value(), root.string(), ": expected checkpoints, but it has no ", kLatest);
  check(is_there(*folder), (root / kLatest).string(), ": names ", folder->filename().string(),
        ", which is not there");
  return *folder;
}

/// Changes when a save replaces what `path` stands for; "" where it cannot be told.
std::string identity(const fs::path& path) {
  try {
    const fs::path folder = folder_of(path);
    return folder.string() + read_file(folder / kManifest);
  } catch (const Error&) {
    return "";
  }
}

/// What to use instead of a broken checkpoint.
std::string remedy(const fs::path& root) {
  const std::vector<std::int64_t> steps = steps_in(root);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      return cat("; the newest whole checkpoint is ",
                 open(root / folder_name(*step)).folder.string(), ": name that, or, for --resume, ",
                 "write ", folder_name(*step), " into ", (root / kLatest).string());
    } catch (const Error&) {
    }
  }
  return cat("; there is no whole checkpoint in ", root.string(),
             ": train anew, with --overwrite or under another name");
}

}  // namespace

fs::path save(const fs::path& root, const Contents& contents, std::int64_t keep) {
  check(contents.step >= 0, root.string(), ": expected a step of at least 0, got ", contents.step);
  check(keep >= 0, root.string(), ": expected to keep at least 0 checkpoints, got ", keep);
  const fs::path folder = root / folder_name(contents.step);
  const fs::path aside = folder.string() + kPartial;
  try {
    fs::create_directories(root);
    remove_leftovers(root);
    fs::create_directory(aside);
    write_contents(aside, contents);
    put_in_place(aside, folder);
    sync_path(root);
    mark_best(root, contents.best_step);
    atomic_write(root / kLatest, folder.filename().string() + "\n");
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);  // it may fill the disk
    throw Error(cat(error.what(), "; checkpoint ", folder.string(),
                    " was not saved; those before it are unharmed"));
  }
  if (keep > 0) prune(root, contents.step, keep, contents.best_step);
  return folder;
}

std::optional<Reader> newest_whole(const fs::path& root,
                                   const std::function<void(const std::string&)>& tell) {
  std::optional<fs::path> named;
  try {
    named = latest(root);
  } catch (const Error& error) {
    throw Error(error.what() + remedy(root));
  }
  std::int64_t from = std::numeric_limits<std::int64_t>::max();
  std::string reason = cat(root.string(), ": has no ", kLatest);
  if (named) {
    try {
      return Reader(open(*named));
    } catch (const Error& error) {
      reason = error.what();
      from = *step_of(named->filename().string());
    }
  }
  const std::vector<std::int64_t> steps = newest_first(root, from);
  for (const std::int64_t step : steps) {
    if (named && step == from) continue;
    try {
      Reader reader(open(root / folder_name(step)));
      tell(cat(reason, "; going on from the newest whole checkpoint, ", reader.folder().string()));
      return reader;
    } catch (const Error&) {
    }
  }
  if (!named && steps.empty()) return std::nullopt;
  throw Error(reason + remedy(root));
}

Reader::Reader(Opened opened)
    : folder_(std::move(opened.folder)),
      step_(opened.step),
      model_sha256_(std::move(opened.model_sha256)),
      state_(std::move(opened.state)),
      recipe_(std::move(opened.recipe)),
      model_(std::move(opened.model)),
      optimizer_(std::move(opened.optimizer)) {}

Reader::Reader(const fs::path& path)
    : Reader([&] {
        const fs::path clean = path.has_filename() ? path : path.parent_path();  // no final '/'
        constexpr int kAttempts = 20;
        for (int attempt = 1;; ++attempt) {
          const std::string before = identity(clean);
          try {
            return open(folder_of(clean));
          } catch (const Error& error) {
            // A run that goes on may have replaced and removed it in the meantime.
            const std::string now = identity(clean);
            if (attempt < kAttempts && (now.empty() || now != before)) continue;
            throw Error(error.what() + remedy(root_of(clean)));
          }
        }
      }()) {}

}  // namespace xsa::checkpoint
