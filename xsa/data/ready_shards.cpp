#include "xsa/data/ready_shards.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "xsa/base/parse_json.h"
#include "xsa/data/corpus_folder.h"
#include "xsa/data/prepare.h"
#include "xsa/data/shard_writer.h"
#include "xsa/data/source.h"
#include "xsa/data/verify.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

/// "fineweb_train_000001.bin" -> fineweb, train, 000001, bin
std::set<std::string> words_of(const fs::path& file) {
  std::set<std::string> words;
  std::string word;
  for (const char letter : file.filename().string() + ".") {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else {
      words.insert(std::exchange(word, ""));
    }
  }
  return words;
}

bool holds_any(const std::set<std::string>& words, std::initializer_list<const char*> wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const char* word) { return words.count(word) > 0; });
}

/// Sorts files into the two sides by the words of their names.
ReadyShards by_name(const std::string& source, const std::vector<fs::path>& files) {
  ReadyShards shards;
  for (const fs::path& file : files) {
    const std::set<std::string> words = words_of(file);
    const bool train = holds_any(words, {"train"});
    const bool validation = holds_any(words, {"val", "valid", "validation"});
    check_usage(train != validation, "data.source '", source, "': expected 'train' or 'val' in ",
                "the name of each token shard, as fineweb_train_000001.bin, got ",
                file.filename().string(), "; rename or move it");
    (train ? shards.train : shards.validation).push_back(file);
  }
  for (const auto& [side, name] :
       {std::pair{&shards.train, "train"}, {&shards.validation, "val"}}) {
    check_usage(!side->empty(), "data.source '", source, "': expected token shards of both sides, ",
                "got none with '", name, "' in its name beside ", files.front().filename().string(),
                "; add them, or name a folder or pattern that holds both");
    std::sort(side->begin(), side->end());
  }
  return shards;
}

/// Whether a folder's manifest is one of data, and no text of that name.
bool is_prepared(const fs::path& folder) {
  if (holds_shards(folder)) return true;
  if (!fs::is_regular_file(folder / kManifestName)) return false;
  const Json manifest = try_parse_json(read_file(folder / kManifestName));
  return manifest.is_object() && manifest.contains("train") && manifest.contains("tokenizer");
}

bool names_a_side(const fs::path& file) {
  return holds_any(words_of(file), {"train", "val", "valid", "validation"});
}

void check_llm_c_shard(const std::string& source, const fs::path& file) {
  std::error_code ignored;
  check_usage(fs::is_regular_file(file, ignored), "data.source '", source,
              "': expected llm.c's token shards, ", file.string(),
              " is no file, or a link to one that is gone; fetch it again, or move it away");
  check_usage(is_llm_c_shard(file), "data.source '", source, "': expected llm.c's token shards, ",
              file.string(), " is none: ", no_llm_c_shard(file),
              ". Fetch it again, or move it away; texts are named by their folder");
}

/// Whether `folder` holds llm.c's shards: then each of its .bin files is one, and none is left out.
/// What does not end in .bin is no data there, and is passed over with a word.
std::optional<ReadyShards> find_llm_c_shards(const std::string& source) {
  std::vector<fs::path> shards;
  std::vector<std::string> others;
  bool any = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
    const fs::path& path = entry.path();
    if (is_hidden(path)) continue;
    if (path.extension() != ".bin") {
      others.push_back(path.filename().string());
      continue;
    }
    shards.push_back(path);
    any = any || names_a_side(path) || (entry.is_regular_file() && is_llm_c_shard(path));
  }
  if (!any) return std::nullopt;
  std::sort(shards.begin(), shards.end());
  std::sort(others.begin(), others.end());
  for (const fs::path& shard : shards) check_llm_c_shard(source, shard);
  ReadyShards found = by_name(source, shards);
  found.passed_over = std::move(others);
  return found;
}

std::optional<ReadyShards> find_in_folder(const std::string& source) {
  const fs::path folder = source;
  if (is_prepared(folder)) return ReadyShards{folder / kManifestName, {}, {}};
  check_usage(!fs::exists(folder / kJournalName), "data.source '", source,
              "': xsa prepare has not finished this folder; run the same command again");
  const bool has_train = fs::exists(folder / "train.bin");
  if (has_train || fs::exists(folder / "val.bin")) {
    const char* const other = has_train ? "val.bin" : "train.bin";
    check_usage(fs::exists(folder / other), "data.source '", source,
                "': expected nanoGPT's train.bin and val.bin, got no ", other);
    check_usage(!fs::exists(folder / "meta.pkl"), "data.source '", source,
                "': nanoGPT's data of characters (meta.pkl), whose ids are of an alphabet of its "
                "own; train on its text with the tokenizer byte instead");
    return ReadyShards{{}, {folder / "train.bin"}, {folder / "val.bin"}};
  }
  return find_llm_c_shards(source);
}

ShardFormat format_of(const std::vector<fs::path>& shards) {
  return std::all_of(shards.begin(), shards.end(), is_llm_c_shard) ? ShardFormat::kLlmC
                                                                   : ShardFormat::kNanoGpt;
}

/// Bytes of the text behind all tokens.
std::int64_t count_bytes(const TokenStream& stream, const text::Tokenizer& tokenizer) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  for (std::size_t id = 0; id < lengths.size(); ++id)
    lengths[id] =
        static_cast<std::int64_t>(tokenizer.decode({static_cast<text::Token>(id)}).size());
  lengths[tokenizer.end_of_text()] = 0;
  std::vector<std::int64_t> ids;
  std::int64_t bytes = 0;
  for (std::int64_t begin = 0; begin < stream.size();
       begin += static_cast<std::int64_t>(ids.size())) {
    ids.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 20, stream.size() - begin)));
    stream.read(begin, ids);
    for (const std::int64_t id : ids) bytes += lengths[static_cast<std::size_t>(id)];
  }
  return bytes;
}

/// What a manifest would say.
Json entry_of(const Split& split) {
  Json shards = Json::array();
  for (const Shard& shard : split.tokens.shards())
    shards.push_back({{"file", shard.path().string()}, {"sha256", shard.verify()}});
  return {{"bytes", split.bytes}, {"tokens", split.tokens.size()}, {"shards", shards}};
}

Dataset open_without_manifest(const ReadyShards& shards, std::unique_ptr<text::Tokenizer> tokenizer,
                              const fs::path& cache) {
  const auto open = [&](const std::vector<fs::path>& paths) {
    return Split{TokenStream(paths, format_of(paths), tokenizer->vocabulary_size())};
  };
  Dataset dataset{open(shards.train), open(shards.validation), std::move(tokenizer), {}};
  verify_shards({&dataset.train.tokens, &dataset.validation.tokens}, cache);
  dataset.validation.bytes = count_bytes(dataset.validation.tokens, *dataset.tokenizer);
  check(dataset.validation.bytes > 0, shards.validation.front().string(),
        ": expected the tokens of a text, got ", dataset.validation.tokens.size(),
        " tokens that stand for none");
  dataset.manifest = {{"tokenizer", dataset.tokenizer->name()},
                      {"vocabulary_size", dataset.tokenizer->vocabulary_size()},
                      {"train", entry_of(dataset.train)},
                      {"validation", entry_of(dataset.validation)}};
  return dataset;
}

Split open_split(const fs::path& folder, const Json& manifest, const char* name,
                 std::int64_t vocabulary) {
  const Json& entry = manifest.at(name);
  const bool raw = manifest.value("format", "llmc") == "nanogpt";
  const char* const remedy = manifest.contains("settings")
                                 ? "; repeat the xsa prepare that made it, with --overwrite"
                                 : "; remove the folder and it is made again";
  std::vector<fs::path> paths;
  std::vector<std::string> sha256;
  for (const Json& shard : entry.at("shards")) {
    sha256.push_back(shard.value("sha256", ""));
    paths.push_back(folder / shard.at("file").get<std::string>());
    check(fs::exists(paths.back()), paths.back().string(),
          ": expected the shard that its folder's manifest names, got no such file", remedy);
  }
  Split split{
      TokenStream(paths, raw ? ShardFormat::kNanoGpt : ShardFormat::kLlmC, vocabulary, sha256),
      entry.at("bytes").get<std::int64_t>()};
  const auto expected = entry.at("tokens").get<std::int64_t>();
  check(split.tokens.size() == expected, folder.string(), ": expected ", expected,
        " tokens as its manifest says, got ", split.tokens.size(), remedy);
  return split;
}

/// Token files that a kill or another program left would be missed in silence.
void check_nothing_beside(const fs::path& folder, const Json& manifest) {
  std::set<std::string> named;
  for (const char* split : {"train", "validation"})
    for (const Json& shard : manifest.at(split).at("shards"))
      named.insert(shard.at("file").get<std::string>());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    check(!is_token_file(name) || named.contains(name), entry.path().string(),
          ": expected a token file that ", kManifestName,
          " beside it names, got another; move it away, or prepare the data anew");
  }
}

Dataset open_prepared(const fs::path& manifest_path, std::unique_ptr<text::Tokenizer> tokenizer,
                      const fs::path& cache) {
  const fs::path folder = manifest_path.parent_path();
  Json manifest = read_json_file(manifest_path);
  try {
    const std::string& made_with = manifest.at("tokenizer").get_ref<const std::string&>();
    check_usage(made_with == tokenizer->name(), folder.string(), ": prepared with the tokenizer '",
                made_with, "', but data.tokenizer is '", tokenizer->name(),
                "'; set data.tokenizer to '", made_with, "'");
    auto [train, validation] = open_splits(folder, manifest, tokenizer->vocabulary_size(), cache);
    Dataset dataset{std::move(train), std::move(validation), std::move(tokenizer),
                    std::move(manifest)};
    check_usage(dataset.validation.tokens.size() > 0, folder.string(),
                ": expected a text held out for validation, got none; repeat the xsa prepare that ",
                "made it, with --overwrite and --validation-fraction 0.01");
    check_nothing_beside(folder, dataset.manifest);
    return dataset;
  } catch (const Json::exception& error) {
    throw Error(cat(manifest_path.string(), ": not a manifest of xsa prepare: ", error.what(),
                    "; prepare the data anew"));
  }
}

}  // namespace

std::optional<ReadyShards> find_ready_shards(const std::string& source) {
  std::error_code ignored;
  if (source == kShakespeare) return std::nullopt;
  if (fs::is_directory(source, ignored)) return find_in_folder(source);
  if (!is_pattern(source)) return std::nullopt;
  const std::vector<fs::path> files = matches_of(source);
  check_usage(!files.empty(), "data.source '", source,
              "': no file has such a name; in a shell, quote the pattern");
  for (const fs::path& file : files) check_llm_c_shard(source, file);
  return by_name(source, files);
}

Splits open_splits(const fs::path& folder, const Json& manifest, std::int64_t vocabulary,
                   const fs::path& cache) {
  Splits splits{open_split(folder, manifest, "train", vocabulary),
                open_split(folder, manifest, "validation", vocabulary)};
  verify_shards({&splits.train.tokens, &splits.validation.tokens}, cache);
  return splits;
}

Dataset open_ready_shards(const ReadyShards& shards, std::unique_ptr<text::Tokenizer> tokenizer,
                          const fs::path& cache) {
  return shards.manifest.empty() ? open_without_manifest(shards, std::move(tokenizer), cache)
                                 : open_prepared(shards.manifest, std::move(tokenizer), cache);
}

}  // namespace xsa::data
