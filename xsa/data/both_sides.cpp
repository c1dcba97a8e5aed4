#include "xsa/data/both_sides.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "xsa/base/file.h"
#include "xsa/data/source.h"
#include "xsa/text/stream_encoder.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunkTokens = 1 << 20;

using Ids = std::vector<std::int64_t>;

/// Calls take with the tokens [begin, end), some at a time, until it says false.
void for_each_chunk(const TokenStream& tokens, std::int64_t begin, std::int64_t end,
                    const std::function<bool(const Ids&)>& take) {
  for (Ids ids; begin < end; begin += static_cast<std::int64_t>(ids.size())) {
    ids.resize(static_cast<std::size_t>(std::min(kChunkTokens, end - begin)));
    tokens.read(begin, ids);
    if (!take(ids)) return;
  }
}

template <class Id>
void add(SplitWriter& side, const std::vector<Id>& ids) {
  side.add(std::vector<std::uint16_t>(ids.begin(), ids.end()));
}

/// The text of a document that begins at token 0, by its tokens.
class DocumentText {
 public:
  DocumentText(const TokenStream& tokens, const text::Tokenizer& tokenizer)
      : tokens_(tokens), tokenizer_(tokenizer) {}

  /// Calls take with the bytes [begin, end), some at a time.
  void read(std::int64_t begin, std::int64_t end,
            const std::function<void(std::string_view)>& take) const {
    std::int64_t at = 0;
    for_each_chunk(tokens_, 1, tokens_.size(), [&](const Ids& ids) {  // behind its end-of-text
      const std::string text = tokenizer_.decode({ids.begin(), ids.end()});
      const auto size = static_cast<std::int64_t>(text.size());
      const std::int64_t first = std::clamp<std::int64_t>(begin - at, 0, size);
      const std::int64_t last = std::clamp<std::int64_t>(end - at, 0, size);
      if (first < last)
        take(std::string_view(text).substr(static_cast<std::size_t>(first),
                                           static_cast<std::size_t>(last - first)));
      at += size;
      return at < end;
    });
  }

  /// A document of its own: the bytes [begin, end).
  void write(std::int64_t begin, std::int64_t end, SplitWriter& side) const {
    text::StreamEncoder encoder(tokenizer_);
    std::vector<text::Token> ids = {tokenizer_.end_of_text()};
    read(begin, end, [&](std::string_view piece) {
      encoder.add(piece, ids);
      add(side, ids);
      ids.clear();
    });
    encoder.finish(ids);
    add(side, ids);
    side.end_document(end - begin);
  }

 private:
  const TokenStream& tokens_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace

bool can_fill_a_side(const Progressed& state) {
  const bool one_is_empty = state.train.documents == 0 || state.validation.documents == 0;
  return one_is_empty && (state.train.documents + state.validation.documents > 1 ||
                          state.train.bytes + state.validation.bytes > 1);
}

Json make_both_sides(const Progressed& state, const SideSource& source,
                     const text::Tokenizer& tokenizer) {
  const fs::path aside = source.folder / kSidesName;
  fs::remove_all(aside);
  fs::create_directory(aside);
  const bool held_out = state.train.documents == 0;  // the full side
  const SplitState& full = held_out ? state.validation : state.train;
  std::vector<fs::path> paths;
  std::vector<std::string> sha256;
  for (const Json& shard : source.entry.at("shards")) {
    paths.push_back(source.folder / shard.at("file").get<std::string>());
    sha256.push_back(shard.at("sha256").get<std::string>());
  }
  const TokenStream tokens(paths, source.format, tokenizer.vocabulary_size(), sha256);
  SplitWriter train(aside, /*validation=*/false, source.format, source.shard_tokens);
  SplitWriter validation(aside, /*validation=*/true, source.format, source.shard_tokens);
  if (full.documents == 1) {
    const DocumentText text(tokens, tokenizer);
    const std::int64_t cut =
        cut_of(full.bytes, source.validation_fraction,
               [&](auto begin, auto end, const auto& take) { text.read(begin, end, take); });
    text.write(0, cut, train);
    text.write(cut, full.bytes, validation);
    return {{"train", train.finish()},
            {"validation", validation.finish()},
            {"held_out", "the end of the text"}};
  }
  SplitWriter& kept = held_out ? validation : train;
  SplitWriter& filled = held_out ? train : validation;
  const Nearest& nearest = held_out ? state.nearest_held_out : state.nearest_trained;
  const auto copy = [&](std::int64_t begin, std::int64_t end, SplitWriter& side) {
    for_each_chunk(tokens, begin, end, [&](const Ids& ids) {
      add(side, ids);
      return true;
    });
  };
  copy(0, nearest.begin, kept);
  copy(nearest.begin, nearest.end, filled);
  copy(nearest.end, tokens.size(), kept);
  filled.end_document(nearest.bytes);
  Json sides = {{"train", train.finish()},
                {"validation", validation.finish()},
                {"held_out", std::string(kHeldOutByHash) + "; all fell to one side, and the " +
                                 "nearest went over to the other"}};
  Json& entry = sides[held_out ? "validation" : "train"];
  entry["documents"] = full.documents - 1;
  entry["bytes"] = full.bytes - nearest.bytes;
  return sides;
}

void install_sides(const fs::path& folder, const Json& sides) {
  std::set<std::string> names;
  for (const char* split : {"train", "validation"})
    for (const Json& shard : sides.at(split).at("shards"))
      names.insert(shard.at("file").get<std::string>());
  for (const std::string& name : names)
    if (const fs::path made = folder / kSidesName / name; fs::exists(made))
      fs::rename(made, folder / name);
  std::vector<fs::path> surplus;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_token_file(name) && !names.contains(name)) surplus.push_back(entry.path());
  }
  for (const fs::path& path : surplus) fs::remove(path);
  fs::remove_all(folder / kSidesName);
  sync_path(folder);
}

}  // namespace xsa::data
