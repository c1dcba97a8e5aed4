// A model to run, from whatever holds one: a checkpoint of ours, the folder of a run, or a GPT-2 in
// Hugging Face's format; and its tokenizer.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "xsa/base/json.h"
#include "xsa/model/gpt.h"
#include "xsa/text/tokenizer.h"

namespace xsa::load {

struct Loaded {
  model::Gpt model;
  std::string tokenizer;  // as text::make_tokenizer knows it; "" where the folder tells none
  Json recipe;            // of the run that made it; null for others
  std::filesystem::path vocabulary;  // its own folder, if that has one; empty: the installed one
  /// What its training depended on (xsa/base/conditions.h) and its "step"; null for others.
  Json conditions{};
};

/// `path`: a checkpoint's folder, a run's (its newest checkpoint), or one with config.json. Throws
/// Error naming what is missing or damaged, UsageError for a path that holds no model.
Loaded load(const std::filesystem::path& path);

/// The model's tokenizer, or the one called `name` where that is not ""; `warn` is told where that
/// is another than the model's own. Throws UsageError where the model does not know every token of
/// it, or none is known for it; Error where its folder's vocabulary is not GPT-2's.
std::unique_ptr<text::Tokenizer> tokenizer_of(
    const Loaded& loaded, const std::string& name,
    const std::function<void(const std::string& warning)>& warn);

}  // namespace xsa::load
