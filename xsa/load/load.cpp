#include "xsa/load/load.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "xsa/base/conditions.h"
#include "xsa/base/error.h"
#include "xsa/checkpoint/checkpoint.h"
#include "xsa/checkpoint/hugging_face.h"
#include "xsa/checkpoint/runs.h"
#include "xsa/load/gpt2.h"
#include "xsa/load/tensors.h"
#include "xsa/text/bpe_tokenizer.h"
#include "xsa/text/gpt2_vocabulary.h"

namespace xsa::load {
namespace {

namespace fs = std::filesystem;

using Warn = std::function<void(const std::string& warning)>;

constexpr std::int64_t kGpt2Vocabulary = 50257, kByteVocabulary = 257;

Loaded from_checkpoint(const fs::path& path) {
  const checkpoint::Reader reader(path);
  model::ModelConfig config;
  try {
    apply_json(config, reader.recipe().value("model", Json::object()), "model");
    config.validate();
  } catch (const UsageError& error) {  // not the user's, who only named the checkpoint
    throw Error(cat((reader.folder() / "recipe.json").string(), ": ", error.what(),
                    "; it is damaged, or another release of xsa wrote it"));
  }
  model::Gpt model(config);
  const at::NoGradGuard guard;
  for (const model::NamedTensor& parameter : model.parameters()) {
    const checkpoint::TensorData& data = reader.model().at(parameter.name);
    check(data.shape == parameter.tensor.sizes().vec(), reader.folder().string(), ": '", data.name,
          "': expected ", Json(parameter.tensor.sizes().vec()).dump(), " as its recipe says, got ",
          Json(data.shape).dump());
    parameter.tensor.copy_(to_float(data, reader.folder().string()));
  }
  check_no_others(reader.model(), model.parameters(), reader.folder().string());
  const Json settings = reader.recipe().value("data", Json::object());
  Json conditions = without_measured(conditions_of(reader.recipe(), reader.state()).values);
  conditions["step"] = reader.step();
  return {.model = std::move(model),
          .tokenizer = settings.value("tokenizer", ""),
          .recipe = reader.recipe(),
          .state = reader.state(),
          .conditions = conditions,
          .folder = reader.folder(),
          .step = reader.step(),
          .weights_sha256 = reader.model_sha256()};
}

Loaded from_hugging_face(const fs::path& path) {
  model::Gpt model = gpt2(checkpoint::HuggingFaceFolder(path));
  const fs::path vocabulary = vocabulary_folder(path);
  std::string tokenizer = vocabulary.empty() ? hugging_face_tokenizer(path, model.config()) : "";
  return {.model = std::move(model),
          .tokenizer = std::move(tokenizer),
          .vocabulary = vocabulary,
          .folder = path};
}

/// "; it holds runs: name one of them, a, b or c"
std::string runs_inside(const fs::path& folder) {
  constexpr std::size_t kShown = 12;
  const std::vector<fs::path> runs = checkpoint::runs_below(folder);
  if (runs.empty()) return "";
  std::string list;
  for (std::size_t i = 0; i < std::min(runs.size(), kShown); ++i)
    list += cat(i == 0 ? "" : ", ", runs[i].string());
  return cat("; it holds runs, name one of them: ", list,
             runs.size() > kShown ? cat(" and ", runs.size() - kShown, " more") : "");
}

/// The model's own; null where none is known.
std::unique_ptr<text::Tokenizer> own_tokenizer(const Loaded& loaded) {
  if (!loaded.vocabulary.empty()) return text::read_tokenizer(loaded.vocabulary);
  return loaded.tokenizer.empty() ? nullptr : text::make_tokenizer(loaded.tokenizer);
}

/// "" where none is known; of a vocabulary that cannot be read its folder.
std::string own_name(const Loaded& loaded) {
  if (loaded.vocabulary.empty()) return loaded.tokenizer;
  try {
    return own_tokenizer(loaded)->name();
  } catch (const Error&) {
    return loaded.vocabulary.string();
  }
}

/// Those of the named tokenizers whose every token a model of so many rows knows, for error texts.
std::string fitting(std::int64_t rows) {
  return rows >= kGpt2Vocabulary   ? "gpt2, byte or a folder"
         : rows >= kByteVocabulary ? "byte or a folder"
                                   : "a folder";
}

}  // namespace

std::string hugging_face_tokenizer(const fs::path& path, const model::ModelConfig& config) {
  const fs::path vocabulary = vocabulary_folder(path);
  if (!vocabulary.empty()) return fs::absolute(vocabulary).lexically_normal().string();
  return config.vocab_size >= kGpt2Vocabulary ? "gpt2" : "";
}

Loaded load(const fs::path& named) {
  const fs::path path = checkpoint::named_checkpoint(named);
  std::error_code ignored;
  constexpr std::string_view kExpected =
      ": expected a run (a folder with checkpoints/), a checkpoint, or a model in Hugging Face's "
      "format (config.json, model.safetensors)";
  check_usage(fs::is_directory(path, ignored), path.string(), kExpected, ", got no folder");
  if (checkpoint::is_hugging_face_folder(path)) return from_hugging_face(path);
  check_usage(checkpoint::is_run_or_checkpoint(path), path.string(), kExpected,
              ", got a folder with none of these", runs_inside(path));
  return from_checkpoint(path);
}

fs::path vocabulary_folder(const fs::path& model) {
  return text::has_merges(model) ? model : fs::path();
}

std::unique_ptr<text::Tokenizer> tokenizer_of(const Loaded& loaded, const std::string& name,
                                              const Warn& warn) {
  const std::int64_t rows = loaded.model.config().vocab_size;
  std::unique_ptr<text::Tokenizer> tokenizer =
      name.empty() || name == loaded.tokenizer ? own_tokenizer(loaded) : text::make_tokenizer(name);
  check_usage(
      tokenizer != nullptr, "no tokenizer is known for the model's vocabulary of ", rows,
      "; put its vocab.json and merges.txt, or its tokenizer.json, into the model's folder, "
      "or name one with --tokenizer: ",
      fitting(rows), " that has these files");
  check_usage(tokenizer->vocabulary_size() <= rows, "tokenizer '", tokenizer->name(), "' has ",
              tokenizer->vocabulary_size(), " tokens, the model's embedding ", rows,
              " rows; use the model's own tokenizer");
  if (name.empty() || name == loaded.tokenizer) return tokenizer;
  const std::string own = own_name(loaded);
  if (!own.empty() && tokenizer->name() != own)
    warn(cat("tokenizer '", tokenizer->name(), "' is not the model's own, '", own,
             "': the ids mean other texts than those it was trained on"));
  return tokenizer;
}

}  // namespace xsa::load
