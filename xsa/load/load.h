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
  Json state;             // state.json of its checkpoint; null for others
  std::filesystem::path vocabulary;  // its own folder, if that has one; empty: the installed one
  /// What its training depended on (xsa/base/conditions.h) and its "step"; null for others.
  Json conditions{};
  std::filesystem::path folder{};  // that holds the weights: a run's checkpoint, or the path itself
  std::int64_t step = 0;           // of the run that made it
  std::string weights_sha256{};    // of a checkpoint's model.safetensors; "" for others
};

/// `path`: a checkpoint's folder, a run's (its newest checkpoint; RUN@best, RUN@latest and RUN@300
/// name another), or one with config.json. Throws Error naming what is missing or damaged,
/// UsageError for a path that holds no model, with the runs that lie inside.
Loaded load(const std::filesystem::path& path);

/// As Loaded::tokenizer, of a folder in Hugging Face's format.
std::string hugging_face_tokenizer(const std::filesystem::path& path,
                                   const model::ModelConfig& config);

/// The model's tokenizer, or the one called `name` where that is not ""; `warn` is told where that
/// is another than the model's own. Throws UsageError where the model does not know every token of
/// it, or none is known for it; Error where its folder's vocabulary is not GPT-2's.
std::unique_ptr<text::Tokenizer> tokenizer_of(
    const Loaded& loaded, const std::string& name,
    const std::function<void(const std::string& warning)>& warn);

}  // namespace xsa::load
