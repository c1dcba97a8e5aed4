#include "xsa/data/corpus.h"

#include <algorithm>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parallel.h"
#include "xsa/base/suggest.h"
#include "xsa/base/system.h"
#include "xsa/data/both_sides.h"
#include "xsa/data/byte_stream.h"
#include "xsa/data/corpus_folder.h"
#include "xsa/data/prepare.h"
#include "xsa/data/ready_shards.h"
#include "xsa/data/tokenize_files.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLeastShardTokens = 10'000;  // a typo makes no million files
constexpr std::string_view kAnew =
    "; repeat the first command to continue, or add --overwrite to begin anew";

void check_choice(const std::string& flag, const std::string& value,
                  const std::vector<std::string>& choices) {
  std::string known;
  for (const std::string& choice : choices) known += (known.empty() ? "" : ", ") + choice;
  check_usage(std::find(choices.begin(), choices.end(), value) != choices.end(), flag,
              ": expected one of ", known, ", got '", value, "'", did_you_mean(value, choices));
}

void check_config(const CorpusConfig& config, const text::Tokenizer& tokenizer) {
  check_choice("--type", config.type, corpus_types());
  check_choice("--format", config.format, corpus_formats());
  check_choice("--on-bad-row", config.on_bad_row, {"fail", "skip"});
  const auto within = [](const char* flag, std::int64_t value, std::int64_t least,
                         std::int64_t most) {
    check_usage(value >= least && value <= most, flag, ": expected ", least, " to ", most, ", got ",
                value);
  };
  within("--shard-tokens", config.shard_tokens, kLeastShardTokens, 2'000'000'000);
  within("--max-row-mib", config.max_row_mib, 1, 2047);
  within("--threads", config.threads, 0, kMostThreads);
  within("--save-mib", config.save_mib, 1, 1'000'000);
  check_usage(config.validation_fraction >= 0 && config.validation_fraction <= 0.5,
              "--validation-fraction: expected 0 to 0.5, got ", config.validation_fraction);
  check_usage(tokenizer.vocabulary_size() <= 65536, "--tokenizer: '", tokenizer.name(), "' has ",
              tokenizer.vocabulary_size(), " ids; token files hold 2 bytes an id, at most 65536");
  check_usage(!config.output.empty(), "--output: expected a folder, got ''");
}

/// What the result depends on beside the files. A key is its flag's name.
Json settings_of(const CorpusConfig& config, const text::Tokenizer& tokenizer) {
  return {{"type", config.type},
          {"column", config.column},
          {"tokenizer", tokenizer.name()},
          {"format", config.format},
          {"validation-fraction", config.validation_fraction},
          {"shard-tokens", config.shard_tokens},
          {"max-row-mib", config.max_row_mib},
          {"on-bad-row", config.on_bad_row}};
}

Json sources_of(const CorpusFiles& files) {
  Json rows = Json::array();
  for (const Input& input : files.inputs) {
    const bool is_stream = input.file.path == kStandardInput;
    rows.push_back({{"path", input.file.name},
                    {"bytes", is_stream ? 0 : input.file.bytes},
                    {"modified_ns", input.file.modified_ns}});
  }
  return rows;
}

Json to_json(const Position& position) {
  return {{"file", position.file}, {"row", position.row}, {"mark", position.mark}};
}

std::vector<std::string> hashes_in(const Json& entry, const SplitState& state) {
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(state.shards); ++i)
    hashes.push_back(entry.at("sha256").at(i).get<std::string>());
  return hashes;
}

/// Adds what is known of the files that were read.
void add_reads(Json& rows, const std::vector<FileRead>& reads) {
  for (std::size_t i = 0; i < reads.size(); ++i) {
    rows[i]["rows"] = reads[i].rows;
    rows[i]["sha256"] = reads[i].sha256;
  }
}

std::string difference_of_settings(const Json& before, const Json& now, std::int64_t bad_rows) {
  for (const auto& [key, value] : now.items()) {
    const Json was = before.value(key, Json());
    // Without bad rows both rules come to the same.
    if (was == value || (key == "on-bad-row" && bad_rows == 0)) continue;
    return cat("--", key, " was ", was.dump(), " and is ", value.dump());
  }
  return "";
}

/// `done`: the record speaks of the rows before. What comes behind is read as it is now.
std::string difference_of_sources(const Json& before, const CorpusFiles& files,
                                  const Position& done) {
  for (std::size_t i = 0; i < std::max(before.size(), files.inputs.size()); ++i) {
    if (i == files.inputs.size()) return before[i].at("path").get<std::string>() + " is gone";
    const SourceFile& file = files.inputs[i].file;
    if (i == before.size()) return file.name + " is new";
    const Json& was = before[i];
    const auto path = was.at("path").get<std::string>();
    if (path != file.name) return path < file.name ? path + " is gone" : file.name + " is new";
    const auto at = static_cast<std::int64_t>(i);
    const bool begun = at < done.file || (at == done.file && done.row > 0);
    if (!begun || file.path == kStandardInput) continue;
    if (was.at("bytes") != file.bytes)
      return cat(path, " had ", was.at("bytes").dump(), " bytes and has ", file.bytes);
    if (was.at("modified_ns") == file.modified_ns) continue;
    if (at == done.file || FileHash(file.path).hex() != was.at("sha256"))
      return path + " was written to since";
  }
  return "";
}

/// `record`: a journal, or the manifest.
void check_same(const fs::path& folder, const Json& record, const Json& settings,
                const CorpusFiles& files, const Position& done) {
  const std::int64_t bad_rows = counts_of(record.at("counts")).bad_rows();
  std::string difference = difference_of_settings(record.at("settings"), settings, bad_rows);
  if (difference.empty()) difference = difference_of_sources(record.at("sources"), files, done);
  check_usage(difference.empty(), folder.string(), ": it was made otherwise: ", difference, kAnew);
}

/// For the first row of a file.
const char* remedy_of(Fault fault) {
  if (fault == Fault::kBroken)
    return "; JSON lines hold an object each: `jq -c '.[]'` makes them of an array, "
           "`jq -c .` of objects that span lines";
  if (fault == Fault::kNoText || fault == Fault::kWrongType)
    return "; name another field with --column, or leave such rows out with --on-bad-row skip";
  return "; leave such rows out with --on-bad-row skip";
}

class Preparation {
 public:
  explicit Preparation(const CorpusConfig& config)
      : config_(config), tokenizer_(text::make_tokenizer(config.tokenizer)) {
    check_config(config, *tokenizer_);
    files_ = find_corpus(config);
    settings_ = settings_of(config, *tokenizer_);
    check_at_the_door();
  }

  Json run() {
    open_output();
    const FolderLock lock(config_.output);
    const Json manifest = record_in(config_.output, kManifestName, config_.overwrite);
    const Json journal = record_in(config_.output, kJournalName, config_.overwrite);
    if (!config_.overwrite && !manifest.is_null()) return finished(manifest);
    check_folder_is_writable(config_.output);
    const bool begun = !config_.overwrite && !journal.is_null() && has_begun(journal);
    if (!begun) {
      check_there_is_text();
      clear(config_.output, !manifest.is_null() || !journal.is_null());
    }
    return work(begun ? journal : Json());
  }

 private:
  void open_output() const {
    constexpr const char* kRemedy = "; name another with --output";
    std::error_code error;
    const fs::file_status status = fs::status(config_.output, error);
    check(!fs::exists(status) || fs::is_directory(status), config_.output.string(),
          ": expected a folder, got a file", kRemedy);
    fs::create_directories(config_.output, error);
    check(!error, config_.output.string(), ": cannot create folder: ", error.message(), kRemedy);
  }

  /// What an earlier run made is not given up for nothing.
  void check_there_is_text() const {
    const bool any =
        std::any_of(files_.inputs.begin(), files_.inputs.end(), [](const Input& input) {
          return input.file.path == kStandardInput ? !InputFile::standard_input().is_at_end()
                                                   : input.file.bytes > 0;
        });
    check(any, files_.inputs.front().file.name, ": expected text, got nothing",
          files_.inputs.size() > 1 ? ", in the others neither" : "");
  }

  /// Opens every file, so that a missing column or a damaged footer shows now and not in hours.
  void check_at_the_door() const {
    for (const Input& input : files_.inputs) {
      if (input.file.path == kStandardInput) continue;
      const auto reader = open_rows(input.file.path, input.form);
      const bool by_bytes =
          input.form.kind == FileKind::kJsonLines || input.form.kind == FileKind::kText;
      Row row;
      if (by_bytes && reader->next(row) && row.fault != Fault::kNone &&
          config_.on_bad_row != "skip")
        throw UsageError(cat(input.file.name, ": ", row.reason, remedy_of(row.fault)));
    }
  }

  /// Whether a journal tells of anything that is worth keeping.
  bool has_begun(const Json& journal) const {
    return reading(config_.output / kJournalName,
                   [&] { return counts_of(journal.at("counts")).rows > 0; });
  }

  Json finished(const Json& manifest) const {
    reading(config_.output / kManifestName, [&] {
      check_same(config_.output, manifest, settings_, files_,
                 {static_cast<std::int64_t>(files_.inputs.size()), 0});
      check_same_standard_input(manifest);
      for (const char* split : {"train", "validation"}) {
        for (const char* key : {"documents", "bytes", "tokens"}) count_in(manifest.at(split), key);
        for (const Json& shard : manifest.at(split).at("shards").get_ref<const Json::array_t&>())
          check_token_file(config_.output / shard.at("file").get_ref<const std::string&>(), format_,
                           count_in(shard, "tokens"));
      }
      for (const Json& name : manifest.at("passed_over").get_ref<const Json::array_t&>())
        name.get_ref<const std::string&>();
      open_splits(config_.output, manifest, tokenizer_->vocabulary_size(), config_.output);
    });
    fs::remove(config_.output / kJournalName);  // left by a kill behind the manifest
    return manifest;
  }

  /// Standard input has no name, size or time to know it by: it is read to its end.
  void check_same_standard_input(const Json& manifest) const {
    if (files_.inputs.front().file.path != kStandardInput) return;
    FileRows rows(files_.inputs, {}, {});
    Bar bar("comparing standard input", files_.inputs.front().file.bytes);
    for (Row row; rows.next(row);) bar.update(rows.raw_bytes(), "");
    check_usage(rows.read().front().sha256 == manifest.at("sources").at(0).at("sha256"),
                config_.output.string(),
                ": it was made of another standard input; name another folder with --output, or "
                "add --overwrite to begin anew");
  }

  Json work(const Json& journal) {
    SplitWriter train(config_.output, /*validation=*/false, format_, config_.shard_tokens);
    SplitWriter validation(config_.output, /*validation=*/true, format_, config_.shard_tokens);
    Progressed state;
    std::vector<FileRead> reads;
    if (journal.is_null()) {
      save(state, reads, train, validation);
    } else {
      reading(config_.output / kJournalName, [&] { load(journal, state, reads); });
      if (journal.contains("sides")) return install(journal, state, std::move(reads));
      train.restore(state.train);
      validation.restore(state.validation);
      reading(config_.output / kJournalName, [&] {
        train.expect(hashes_in(journal.at("train"), state.train));
        validation.expect(hashes_in(journal.at("validation"), state.validation));
      });
    }
    FileRows rows(files_.inputs, state.position, reads);
    std::int64_t bytes = 0;
    for (const Input& input : files_.inputs) bytes += input.file.bytes;
    Bar bar("preparing", bytes, rows.raw_bytes());
    const TokenizeOptions options{
        .workers = threads_or_default(config_.threads),
        .validation_fraction = config_.validation_fraction,
        .skip_bad_rows = config_.on_bad_row == "skip",
        .commit_bytes = config_.save_mib << 20,
        .commit = [&](const Progressed& now) { save(now, rows.read(), train, validation); },
        .stopped = "stopped; the same command continues where it was",
        .bar = &bar};
    tokenize_files(rows, *tokenizer_, train, validation, state, options);
    const std::int64_t documents = state.train.documents + state.validation.documents;
    const Json& examples = state.counts.examples;
    check(documents > 0, "expected at least one document, got none in ", state.counts.rows,
          " rows of ", files_.inputs.size(), " files",
          examples.empty() ? "; name files that hold text"
                           : cat("; the first bad row: ", examples[0].dump()));
    const auto hashing = [&](const fs::path& file) {
      bar.update(bar.done(), "hashing " + file.filename().string());
    };
    Json sides = {{"train", train.finish(hashing)}, {"validation", validation.finish(hashing)}};
    sides["held_out"] = config_.validation_fraction == 0 ? "none"
                        : files_.cut                     ? "the end of the text"
                                                         : std::string(kHeldOutByHash);
    if (config_.validation_fraction > 0 && can_fill_a_side(state)) {
      bar.update(bar.done(), "filling the empty side");
      sides = make_both_sides(state,
                              {.entry = sides[state.train.documents > 0 ? "train" : "validation"],
                               .folder = config_.output,
                               .format = format_,
                               .shard_tokens = config_.shard_tokens,
                               .validation_fraction = config_.validation_fraction},
                              *tokenizer_);
      save(state, rows.read(), train, validation, sides);
      install_sides(config_.output, sides);
    }
    return write_manifest(state, rows.read(), std::move(sides));
  }

  /// What is left to do where a run broke off behind make_both_sides.
  Json install(const Json& journal, const Progressed& state, std::vector<FileRead> reads) const {
    FileRows rows(files_.inputs, state.position, std::move(reads));
    Row row;
    check(!rows.next(row), rows.input(rows.position().file).file.name,
          ": it has become longer; begin anew with --overwrite");
    return reading(config_.output / kJournalName, [&] {
      install_sides(config_.output, journal.at("sides"));
      return write_manifest(state, rows.read(), journal.at("sides"));
    });
  }

  /// `sides`: of make_both_sides, once they are made.
  void save(const Progressed& state, const std::vector<FileRead>& reads, const SplitWriter& train,
            const SplitWriter& validation, const Json& sides = {}) const {
    const auto entry = [](const SplitState& split, const SplitWriter& writer) {
      Json json = to_json(split);
      json["sha256"] = writer.sha256();
      return json;
    };
    Json sources = sources_of(files_);
    // The reader may be ahead of what is written.
    add_reads(sources, {reads.begin(), reads.begin() + state.position.file});
    Json journal = {{"version", kJournalVersion},
                    {"settings", settings_},
                    {"position", to_json(state.position)},
                    {"train", entry(state.train, train)},
                    {"validation", entry(state.validation, validation)},
                    {"nearest_trained", data::to_json(state.nearest_trained)},
                    {"nearest_held_out", data::to_json(state.nearest_held_out)},
                    {"counts", to_json(state.counts)},
                    {"sources", sources}};
    if (!sides.is_null()) journal["sides"] = sides;
    write_json_file(config_.output / kJournalName, journal);
  }

  void load(const Json& journal, Progressed& state, std::vector<FileRead>& reads) const {
    check(journal.at("version") == kJournalVersion, (config_.output / kJournalName).string(),
          ": expected version ", kJournalVersion, ", got ", journal.at("version").dump(),
          ", of another xsa prepare; continue with that, or add --overwrite to begin anew");
    const Json& at = journal.at("position");
    state.position = {count_in(at, "file"), count_in(at, "row"), at.at("mark").get<std::string>()};
    check_same(config_.output, journal, settings_, files_, state.position);
    state.train = split_state_of(journal.at("train"));
    state.validation = split_state_of(journal.at("validation"));
    state.nearest_trained = nearest_of(journal.at("nearest_trained"));
    state.nearest_held_out = nearest_of(journal.at("nearest_held_out"));
    state.counts = counts_of(journal.at("counts"));
    for (std::size_t i = 0; i < static_cast<std::size_t>(state.position.file); ++i) {
      const Json& row = journal.at("sources").at(i);
      reads.push_back({count_in(row, "rows"), row.at("sha256").get<std::string>()});
    }
  }

  /// `sides`: "train", "validation" and "held_out".
  Json write_manifest(const Progressed& state, const std::vector<FileRead>& reads,
                      Json sides) const {
    Json sources = sources_of(files_);
    add_reads(sources, reads);
    Json manifest = {{"name", config_.output.filename().string()},
                     {"format", config_.format},
                     {"tokenizer", tokenizer_->name()},
                     {"vocabulary_size", tokenizer_->vocabulary_size()},
                     {"end_of_text", tokenizer_->end_of_text()},
                     {"validation_fraction", config_.validation_fraction},
                     {"held_out", sides.at("held_out")},
                     {"train", sides.at("train")},
                     {"validation", sides.at("validation")},
                     {"counts", to_json(state.counts)},
                     {"settings", settings_},
                     {"passed_over", files_.passed_over},
                     {"sources", std::move(sources)}};
    write_json_file(config_.output / kManifestName, manifest);
    fs::remove(config_.output / kJournalName);
    return manifest;
  }

  const CorpusConfig& config_;
  const ShardFormat format_ = config_.format == "llmc" ? ShardFormat::kLlmC : ShardFormat::kNanoGpt;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  CorpusFiles files_;
  Json settings_;
};

}  // namespace

Json prepare_corpus(const CorpusConfig& config) {
  try {
    return Preparation(config).run();
  } catch (const fs::filesystem_error& error) {
    throw Error(cat(error.path1().string(), ": ", error.code().message()));
  }
}

}  // namespace xsa::data
