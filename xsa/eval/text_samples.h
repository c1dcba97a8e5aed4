// A whole text to be scored: in windows, each token predicted once (tasks/rolling.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xsa/tasks/rolling.h"
#include "xsa/text/tokenizer.h"

namespace xsa::eval {

struct TextSamples {
  std::string name;  // in tables: the file's name; its path where two have that name, or a task
  std::filesystem::path path;
  std::int64_t tokens = 0, words = 0, bytes = 0;
  std::string sha256;  // of what is scored of it
  std::vector<tasks::Window> windows;
};

/// Reads and cuts the files for a model of this context; with a limit, each as if it ended with its
/// first `limit` windows. Throws Error for a file that cannot be read, is empty or binary,
/// UsageError for one that is given twice.
std::vector<TextSamples> load_texts(const std::vector<std::string>& paths,
                                    const text::Tokenizer& tokenizer, std::int64_t context,
                                    std::optional<std::int64_t> limit = {});

/// Adds a row for each text to what tasks::summarize gave, and where there are several one for all
/// of them together, "all texts": the same figures over their summed log-likelihoods, words and
/// bytes.
void add_texts(Json& summary, std::span<const TextSamples> texts,
               std::span<const double> log_likelihoods);

}  // namespace xsa::eval
