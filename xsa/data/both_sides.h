// A corpus whose documents all fell to one side gets the other: of several documents the nearest
// goes over, a single one is cut, as texts are (source.h). Made from the tokens that are written,
// so that nothing is read twice, standard input neither.
#pragma once

#include <filesystem>

#include "xsa/base/json.h"
#include "xsa/data/tokenize_files.h"

namespace xsa::data {

/// Where the new sides are made before they take the old one's place. Hidden.
inline constexpr const char* kSidesName = ".sides";

/// The rule for documents that are told apart by their text, in a manifest's "held_out".
inline constexpr std::string_view kHeldOutByHash =
    "documents whose first MiB's SHA-256, its first 52 bits read as a fraction, is below "
    "validation_fraction";

/// Whether one side is empty and the other has enough for both.
bool can_fill_a_side(const Progressed& state);

struct SideSource {
  const Json& entry;  // the full side's, as SplitWriter::finish gives it
  std::filesystem::path folder;
  ShardFormat format;
  std::int64_t shard_tokens;
  double validation_fraction;
};
/// Writes both sides into folder / kSidesName and returns {"train": entry, "validation": entry,
/// "held_out": the rule, for people}. The folder's own files stay as they are.
Json make_both_sides(const Progressed& state, const SideSource& source,
                     const text::Tokenizer& tokenizer);

/// Puts them in the place of the folder's token files. A kill leaves a folder where this may be
/// called again.
void install_sides(const std::filesystem::path& folder, const Json& sides);

}  // namespace xsa::data
