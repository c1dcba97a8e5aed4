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
  std::filesystem::path vocabulary;  // a folder with its own; empty: `tokenizer` names one
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

/// The folder whose vocabulary (vocab.json and merges.txt, or tokenizer.json) is that of the model
/// in Hugging Face's format there, as data.tokenizer takes it; "" where it has none.
std::filesystem::path vocabulary_folder(const std::filesystem::path& model);

/// What data.tokenizer is for a model in Hugging Face's format: its vocabulary's folder, "gpt2", or
/// "" where none is known.
std::string hugging_face_tokenizer(const std::filesystem::path& path,
                                   const model::ModelConfig& config);

/// The model's tokenizer, or the one called `name` where that is not ""; `warn` is told where that
/// is another than the model's own. Throws UsageError where the model does not know every token of
/// it, or none is known for it; Error where its folder's vocabulary cannot be read.
std::unique_ptr<text::Tokenizer> tokenizer_of(
    const Loaded& loaded, const std::string& name,
    const std::function<void(const std::string& warning)>& warn);

}  // namespace xsa::load
