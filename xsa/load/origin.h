// Where a training's first weights come from: a run, a checkpoint or a GPT-2 of Hugging Face's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "xsa/model/gpt.h"

namespace xsa::load {

/// What a training takes from there beside the weights.
struct Origin {
  model::ModelConfig model;
  std::string tokenizer;  // "": it tells none
};
/// `path` as in load. Errors as load's.
Origin origin_of(const std::filesystem::path& path);

/// Throws UsageError naming the settings by which `wanted` would lose or reshape weights of
/// `there`. What it has beyond them may be new.
void check_fits(const model::ModelConfig& there, const model::ModelConfig& wanted,
                const std::string& path);

/// What a training has begun with.
struct Begun {
  std::string path;  // absolute; of a run, its checkpoint's
  std::int64_t step = 0;
  std::string weights_sha256;  // of model.safetensors or, of several files, of their hashes
  std::string text;            // for people: the path, the step, and which weights are new
};
/// Writes the weights into `model`, whose own values stay where `path` has none; an output layer
/// of its own begins as the embedding that it was tied to. Throws UsageError as check_fits.
Begun begin_with(const model::Gpt& model, const std::filesystem::path& path);

}  // namespace xsa::load
