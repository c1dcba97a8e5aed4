// Which files a corpus is made of.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/data/byte_stream.h"
#include "xsa/data/corpus.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

/// The order in which a folder's files are asked for their kind: what is rarer beside the others
/// first, so that a README does not become a document.
constexpr std::array kByPreference = {FileKind::kParquet, FileKind::kArrow, FileKind::kJsonLines,
                                      FileKind::kText};

std::optional<FileKind> forced_kind(const std::string& type) {
  const std::map<std::string, FileKind> kinds = {{"text", FileKind::kText},
                                                 {"jsonl", FileKind::kJsonLines},
                                                 {"parquet", FileKind::kParquet},
                                                 {"arrow", FileKind::kArrow}};
  const auto found = kinds.find(type);
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> neighbours(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    names.push_back(path.has_parent_path() ? (folder / entry.path().filename()).string()
                                           : entry.path().filename().string());
  return names;
}

constexpr std::string_view kNoProse =
    "whose commas and quotes are no prose; make JSON lines of it, e.g. by `python3 -c 'import csv, "
    "json, sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]' < OLD.csv > "
    "NEW.jsonl`, or say --type text to take it as it stands";

class Finder {
 public:
  explicit Finder(const CorpusConfig& config)
      : config_(config),
        kind_(forced_kind(config.type)),
        output_(fs::weakly_canonical(config.output)) {}

  CorpusFiles find() {
    check_usage(!config_.sources.empty(), "sources: expected files, folders or '-', got none");
    for (const std::string& source : config_.sources) add(source);
    std::sort(found_.inputs.begin(), found_.inputs.end(),
              [](const Input& a, const Input& b) { return a.file.name < b.file.name; });
    std::sort(found_.passed_over.begin(), found_.passed_over.end());
    cut_a_single_text();
    return std::move(found_);
  }

 private:
  void add(const std::string& source) {
    check_usage(!source.empty(), "sources: expected a file, a folder, a pattern or '-', got ''");
    if (source == kStandardInput) return add_standard_input();
    if (fs::is_directory(source)) return add_folder(source);
    if (fs::exists(source)) return add_file(source);
    const std::vector<fs::path> paths = matches_of(source);
    check_usage(!paths.empty(), source, ": no such file or folder",
                did_you_mean(source, neighbours(source)));
    for (const fs::path& path : paths) fs::is_directory(path) ? add_folder(path) : add_file(path);
  }

  void add_standard_input() {
    check_usage(config_.sources.size() == 1, "-: standard input must be the only source");
    check_usage(kind_ != FileKind::kParquet, "-: parquet is read from its end and needs a file");
    check_usage(::isatty(STDIN_FILENO) == 0,
                "-: standard input is a terminal; pipe a text into it");
    struct stat status {};
    const bool is_file = ::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
    Input input{{"standard input", fs::path(kStandardInput), is_file ? status.st_size : 0, 0},
                form(kind_.value_or(FileKind::kText))};
    input.form.guess = !kind_;
    found_.inputs.push_back(std::move(input));
  }

  void add_file(const fs::path& path) {
    check_usage(kind_ || !is_table(path), path.string(), ": a table, ", kNoProse);
    add(inspect(path, path.lexically_normal().string()));
  }

  void add(SourceFile file) {
    const auto [first, is_new] = named_.emplace(fs::canonical(file.path), file.name);
    check_usage(is_new, file.name, ": this file is named twice, also as ", first->second);
    const FileKind kind = kind_.value_or(kind_of(file.path));
    Input input{std::move(file), form(kind)};
    input.form.guess = !kind_ && input.file.path.extension().empty();  // its name says nothing
    found_.inputs.push_back(std::move(input));
  }

  void add_folder(const fs::path& folder) {
    check_usage(fs::canonical(folder) != output_, folder.string(),
                ": it is the source and the --output; name another folder with --output");
    FolderFiles folder_files = files_of(folder);
    std::vector<SourceFile>& files = folder_files.files;
    for (const std::string& name : folder_files.passed_over)
      if (fs::canonical(folder / name) != output_)
        found_.passed_over.push_back((folder / name).lexically_normal().string());
    std::erase_if(files, [&](const SourceFile& file) {
      return fs::canonical(file.path).parent_path() == output_;
    });
    const auto is = [&](const SourceFile& file, FileKind kind) {
      return kind_of(file.path) == kind && (kind_ || !is_table(file.path));
    };
    const auto holds = [&](FileKind kind) {
      return std::any_of(files.begin(), files.end(),
                         [&](const SourceFile& file) { return is(file, kind); });
    };
    const auto wanted =
        kind_ ? *kind_ : *std::find_if(kByPreference.begin(), kByPreference.end() - 1, holds);
    const auto table = std::find_if(files.begin(), files.end(), [&](const SourceFile& file) {
      return !kind_ && is_table(file.path);
    });
    check_usage(holds(wanted), folder.string(), ": expected ",
                kind_ ? "files of --type " + config_.type : "files",
                " in this folder, found none (hidden files are not read)",
                table == files.end() ? "" : cat("; ", table->name, " is a table, ", kNoProse));
    std::set<fs::path> seen;  // a link to a file beside it is not read twice
    for (SourceFile& file : files) {
      file.name = (folder / file.name).lexically_normal().string();
      if (!is(file, wanted))
        found_.passed_over.push_back(file.name);
      else if (seen.insert(fs::canonical(file.path)).second)
        add(std::move(file));
    }
  }

  RowForm form(FileKind kind) const {
    return {.kind = kind,
            .column = config_.column,
            .max_line_bytes = static_cast<std::size_t>(config_.max_row_mib) << 20};
  }

  /// A text alone is one document, which no hash can divide.
  void cut_a_single_text() {
    Input& input = found_.inputs.front();
    if (found_.inputs.size() > 1 || input.form.kind != FileKind::kText ||
        input.file.path == kStandardInput || input.file.bytes < 2 ||
        config_.validation_fraction == 0 || is_packed(input.file.path))
      return;
    input.form.cut = cut_of(input.file, config_.validation_fraction);
    found_.cut = true;
  }

  const CorpusConfig& config_;
  std::optional<FileKind> kind_;
  fs::path output_;
  CorpusFiles found_;
  std::map<fs::path, std::string> named_;
};

}  // namespace

std::vector<std::string> corpus_types() { return {"auto", "text", "jsonl", "parquet", "arrow"}; }

std::vector<std::string> corpus_formats() { return {"llmc", "nanogpt"}; }

CorpusFiles find_corpus(const CorpusConfig& config) {
  try {
    return Finder(config).find();
  } catch (const fs::filesystem_error& error) {
    throw Error(cat(error.path1().string(), ": cannot read: ", error.code().message()));
  }
}

}  // namespace xsa::data
