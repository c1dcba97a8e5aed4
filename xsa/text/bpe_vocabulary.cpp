#include "xsa/text/bpe_vocabulary.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/hash.h"
#include "xsa/base/parse_json.h"
#include "xsa/text/byte_alphabet.h"

namespace xsa::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t kMostIds = std::int64_t{1} << 24;
constexpr char kEndOfText[] = "<|endoftext|>";

Json member(const Json& object, const char* key) {
  return object.is_object() ? object.value(key, Json()) : Json();
}

/// "type" of an object of tokenizer.json; "none" where the part is missing.
std::string type_of(const Json& part) {
  if (part.is_null()) return "none";
  const Json type = member(part, "type");
  return type.is_string() ? type.get<std::string>() : "one without a type";
}

std::optional<fs::path> first_that_exists(const fs::path& folder,
                                          std::initializer_list<const char*> names) {
  std::error_code ignored;
  for (const char* name : names)
    if (fs::is_regular_file(folder / name, ignored)) return folder / name;
  return std::nullopt;
}

/// Reads into a vocabulary; `path` is the file that errors name.
class Reader {
 public:
  explicit Reader(const fs::path& folder) { result_.folder = folder; }

  BpeVocabulary read() {
    const fs::path& folder = result_.folder;
    const auto tokenizer = first_that_exists(folder, {"tokenizer.json"});
    tokenizer ? read_tokenizer(*tokenizer) : read_pair(folder);
    add_special_of_other_files();
    check_unmade();
    note_end_of_text();
    std::ranges::sort(result_.special, {}, &SpecialToken::id);
    result_.sha256 = hash_.hex();
    return std::move(result_);
  }

 private:
  std::string read_text(const fs::path& path) {
    std::string text = read_file(path);
    hash_.add(std::as_bytes(std::span(text)));
    return text;
  }

  Json read_json(const fs::path& path) {
    const std::string text = read_text(path);
    try {
      return parse_sorted_json(text);
    } catch (const Error& error) {
      throw Error(cat(path.string(), ": ", error.what()));
    }
  }

  /// The file's content where there is such a file, else null.
  Json read_if_there(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) ? read_json(path) : Json();
  }

  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    check(condition, path_.string(), ": ", parts...);
  }

  void read_pair(const fs::path& folder) {
    const auto ids = first_that_exists(folder, {"vocab.json", "encoder.json"});
    const auto merges = first_that_exists(folder, {"merges.txt", "vocab.bpe"});
    check(ids && merges, folder.string(),
          ": expected a tokenizer: tokenizer.json, or vocab.json and merges.txt; ",
          ids ? "merges.txt" : "vocab.json", " is missing");
    path_ = *ids;
    read_ids(read_json(path_));
    path_ = *merges;
    const std::string text = read_text(path_);
    std::string_view rest = text;
    for (std::int64_t number = 1; !rest.empty(); ++number) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
      add_merge_line(line, cat("line ", number));
    }
  }

  void read_tokenizer(const fs::path& path) {
    path_ = path;
    const Json json = read_json(path);
    const Json model = member(json, "model");
    require(model.is_object(), "expected a tokenizer of Hugging Face's, an object with 'model'");
    check_kind(json, model);
    read_ids(member(model, "vocab"));
    const Json merges = member(model, "merges");
    require(merges.is_array(), "expected 'merges', a list");
    std::int64_t number = 0;
    for (const Json& merge : merges) {
      const std::string where = cat("merge ", number++, " (from 0)");
      if (merge.is_string()) {
        add_merge_line(merge.get_ref<const std::string&>(), where);
        continue;
      }
      require(merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string(),
              where, ": expected two tokens, got ", merge.dump());
      add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(),
                where);
    }
    const Json added = member(json, "added_tokens");
    if (added.is_array())
      for (const Json& token : added) add_special(token, member(token, "id"));
    if (member(model, "ignore_merges") == true)
      for (Token id = 0; id < result_.tokens.size(); ++id)
        if (!result_.tokens[id].empty()) result_.whole_words.emplace(result_.tokens[id], id);
  }

  /// That nothing but GPT-2's way of cutting texts stands between them and the merges.
  void check_kind(const Json& json, const Json& model) const {
    constexpr char kOnly[] = "; xsa reads byte-level BPE as GPT-2's alone";
    const auto expect = [&](const char* what, const Json& part, bool fits, const char* wanted) {
      require(fits, what, ": expected ", wanted, ", got ", type_of(part), kOnly);
    };
    const std::string kind = member(model, "type").is_null() ? "BPE" : type_of(model);
    expect("model", model, kind == "BPE", "BPE");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json value = member(model, key);
      require(value.is_null() || value == "" || value == 0.0, "model.", key,
              ": expected none, got ", value.dump(), kOnly);
    }
    require(member(model, "byte_fallback") != true, "model.byte_fallback: expected false", kOnly);
    expect("normalizer", member(json, "normalizer"), member(json, "normalizer").is_null(), "none");
    Json cut = member(json, "pre_tokenizer");
    if (type_of(cut) == "Sequence" && member(cut, "pretokenizers").is_array() &&
        member(cut, "pretokenizers").size() == 1)
      cut = cut["pretokenizers"][0];
    expect("pre_tokenizer", cut, type_of(cut) == "ByteLevel", "ByteLevel");
    require(member(cut, "add_prefix_space") == false,
            "pre_tokenizer.add_prefix_space: expected false, got ",
            member(cut, "add_prefix_space").dump(),
            "; a space before every text would be none that the text has");
    require(member(cut, "use_regex") != false,
            "pre_tokenizer.use_regex: expected true, GPT-2's pattern");
    const Json after = member(json, "post_processor");
    expect("post_processor", after, after.is_null() || type_of(after) == "ByteLevel",
           "none or ByteLevel");
    require(member(json, "truncation").is_null(), "truncation: expected none, got ",
            member(json, "truncation").dump());
  }

  void read_ids(const Json& ids) {
    require(ids.is_object() && !ids.empty(), "expected tokens with their ids, an object");
    result_.byte_tokens.fill(BpeVocabulary::kNone);
    for (const auto& [written, id] : ids.items()) {
      const Token token = take_id(written, id);
      ids_.emplace(written, token);
      const auto bytes = byte_alphabet().bytes(written);
      result_.tokens[token] = bytes && !bytes->empty() ? *bytes : written;
      if (bytes && bytes->size() == 1)
        result_.byte_tokens[static_cast<unsigned char>(bytes->front())] = token;
      if (!bytes || bytes->size() != 1) unmade_.insert(written);
    }
  }

  /// An id that no other token has.
  Token take_id(const std::string& written, const Json& id) {
    require(id.is_number_integer() && id >= 0 && id < kMostIds, "'", written,
            "': expected an id from 0 to ", kMostIds - 1, ", got ", id.dump());
    const auto token = id.get<Token>();
    if (token >= result_.tokens.size()) result_.tokens.resize(token + std::size_t{1});
    require(result_.tokens[token].empty(), "'", written, "': the id ", token, " is another's too");
    require(!written.empty(), "expected tokens of at least one character, got '' as ", token);
    return token;
  }

  void add_merge_line(std::string_view line, const std::string& where) {
    const std::size_t space = line.find(' ');
    require(space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos,
            where, ": expected two tokens with a space between them, got '", line, "'");
    add_merge(std::string(line.substr(0, space)), std::string(line.substr(space + 1)), where);
  }

  void add_merge(const std::string& left, const std::string& right, const std::string& where) {
    const auto find = [&](const std::string& written) {
      const auto found = ids_.find(written);
      require(found != ids_.end(), where, ": '", written, "' is no token of the vocabulary");
      return found->second;
    };
    const Token a = find(left), b = find(right), merged = find(left + right);
    unmade_.erase(left + right);
    const auto rank = static_cast<std::uint32_t>(result_.merges.size());
    result_.merges.emplace(BpeVocabulary::key(a, b), BpeVocabulary::Merge{rank, merged});
  }

  /// A token beside the merges: {"content", ...} or a text alone. Its id may be in the vocabulary.
  void add_special(const Json& token, const Json& id) {
    const Json content = token.is_object() ? member(token, "content") : token;
    if (!content.is_string() || content.get_ref<const std::string&>().empty()) return;
    const std::string& text = content.get_ref<const std::string&>();
    for (const char* key : {"lstrip", "rstrip", "single_word"})
      require(member(token, key) != true, "the added token '", text, "': expected ", key,
              " to be false; xsa reads an added token as it is written, wherever it stands");
    const auto found = ids_.find(text);
    if (found == ids_.end()) {
      if (id.is_null()) return;  // named, but in no vocabulary
      const Token taken = take_id(text, id);
      ids_.emplace(text, taken);
      result_.tokens[taken] = text;
    } else {
      require(id.is_null() || id == found->second, "the added token '", text, "' has the id ",
              id.dump(), ", but ", found->second, " in the vocabulary");
    }
    unmade_.erase(text);
    const Token known = ids_.at(text);
    result_.tokens[known] = text;
    if (std::ranges::none_of(result_.special, [&](const auto& each) { return each.id == known; }))
      result_.special.push_back({text, known});
  }

  void add_special_of_other_files() {
    path_ = result_.folder / "added_tokens.json";
    const Json added = read_if_there(path_);
    if (added.is_object())
      for (const auto& [text, id] : added.items()) add_special(text, id);
    path_ = result_.folder / "tokenizer_config.json";
    config_ = read_if_there(path_);
    require(member(config_, "add_prefix_space") != true,
            "add_prefix_space: expected false, got true; a space before every text would be none "
            "that the text has");
    const Json decoder = member(config_, "added_tokens_decoder");
    if (decoder.is_object())
      for (const auto& [id, token] : decoder.items())
        add_special(token, parse_sorted_json(id.empty() ? "null" : id));
    path_ = result_.folder / "special_tokens_map.json";
    map_ = read_if_there(path_);
    for (const Json* file : {&config_, &map_})
      for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                              "cls_token", "mask_token"})
        add_special(member(*file, key), {});
  }

  /// A token that no merge makes is never made of a text. A few are meant so, and look it; of
  /// others a merge is missing.
  void check_unmade() {
    path_ = result_.folder;
    for (const std::string& written : std::set<std::string>(unmade_)) {
      const bool looks_special = (written.starts_with('<') && written.ends_with('>')) ||
                                 (written.starts_with('[') && written.ends_with(']'));
      require(looks_special, "the vocabulary has '", written,
              "', which no merge makes and no file calls a special token; are the merges cut, or "
              "another vocabulary's?");
      add_special(written, {});
    }
  }

  std::optional<Token> find_token(const Json& named) const {
    const Json content = named.is_object() ? member(named, "content") : named;
    if (!content.is_string()) return std::nullopt;
    const auto found = ids_.find(content.get<std::string>());
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

  void note_end_of_text() {
    const auto named = [&](const char* key) {
      const auto found = find_token(member(config_, key));
      return found ? found : find_token(member(map_, key));
    };
    std::optional<Token> end = named("eos_token");
    Json id = member(read_if_there(result_.folder / "config.json"), "eos_token_id");
    if (id.is_array() && !id.empty()) id = Json(id[0]);
    if (!end && id.is_number_integer() && id >= 0 && id < result_.tokens.size() &&
        !result_.tokens[id.get<std::size_t>()].empty())
      end = id.get<Token>();
    if (!end) end = find_token(kEndOfText);
    check(end.has_value(), result_.folder.string(),
          ": expected a token that ends a text, got none: name one of its tokens as eos_token in "
          "tokenizer_config.json or special_tokens_map.json, or as eos_token_id in config.json");
    result_.end_of_text = *end;
    result_.begin_of_text = named("bos_token").value_or(*end);
  }

  BpeVocabulary result_;
  Sha256 hash_;
  fs::path path_;
  std::unordered_map<std::string, Token> ids_;  // as written in the files
  std::set<std::string> unmade_;                // tokens that no merge has made yet
  Json config_, map_;
};

}  // namespace

BpeVocabulary BpeVocabulary::read(const fs::path& folder) { return Reader(folder).read(); }

}  // namespace xsa::text
