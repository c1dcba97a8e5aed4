// Whatever a model has beyond the paper's: it learns, is saved, and goes on to the same bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "tests/support/model_variants.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/base/rng.h"
#include "xsa/base/signals.h"
#include "xsa/checkpoint/checkpoint.h"
#include "xsa/data/shard.h"
#include "xsa/load/load.h"
#include "xsa/text/tokenizer.h"
#include "xsa/train/trainer.h"

namespace xsa::train {
namespace {

namespace fs = std::filesystem;

/// A shard of documents of 1 to 40 letters, an end-of-text token in front of each.
void write_documents(const fs::path& path, std::uint64_t seed) {
  const auto tokenizer = text::make_tokenizer("byte");
  Rng rng(seed);
  std::vector<text::Token> tokens;
  for (int document = 0; document < 60; ++document) {
    tokens.push_back(tokenizer->end_of_text());
    for (std::uint64_t left = 1 + rng.below(40); left > 0; --left)
      tokens.push_back(static_cast<text::Token>('a' + rng.below(26)));
  }
  data::write_shard(path, tokens);
}

RunConfig tiny(const fs::path& data) {
  fs::create_directory(data);
  write_documents(data / "made_train_0.bin", 1);
  write_documents(data / "made_val_0.bin", 2);
  RunConfig config;
  config.model = {.layers = 2, .width = 16, .heads = 2, .head_dim = 8, .context = 32};
  config.data.source = data.string();
  config.train.steps = 3;
  config.train.batch_size = 4;
  config.train.lr = 1e-2;
  config.train.warmup_steps = 1;
  config.train.threads = 1;
  config.train.eval_every = 3;
  config.train.eval_rows = 2;
  config.train.checkpoint_every = 3;
  return config;
}

void stop_after(std::int64_t stop_step, const RunConfig& config, const fs::path& run) {
  install_stop_handlers();
  TrainOptions options;
  options.overwrite = true;
  options.after_step = [=](std::int64_t step) {
    if (step == stop_step) std::raise(SIGTERM);
  };
  EXPECT_THROW(train(config, run, options), Interrupted);
  clear_stop_signal();
}

TEST(ModelVariants, LearnAndGoOnAfterASignalAsIfNothingHadHappened) {
  const testing::TempFolder folder;
  RunConfig config = tiny(folder / "data");
  const fs::path unbroken = folder / "unbroken", stopped = folder / "stopped";
  bool is_packed = false;
  for (const model::ModelConfig& variant : every_variant(config.model)) {
    SCOPED_TRACE(xsa::to_json(variant).dump());
    config.model = variant;
    is_packed = !is_packed;
    config.data.documents = is_packed ? "packed" : "stream";
    const Json whole = train(config, unbroken, {.overwrite = true});
    stop_after(2, config, stopped);
    const Json resumed = train(config, stopped, {.resume = true});
    EXPECT_EQ(resumed["validation_loss"], whole["validation_loss"]);
    for (const char* file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(read_file(*checkpoint::latest(stopped / "checkpoints") / file) ==
                  read_file(*checkpoint::latest(unbroken / "checkpoints") / file))
          << file;

    const model::Gpt loaded = load::load(stopped).model;
    const model::Gpt fresh(loaded.config(), static_cast<std::uint64_t>(config.train.seed));
    for (std::size_t i = 0; i < loaded.parameters().size(); ++i)
      EXPECT_FALSE(at::equal(loaded.parameters()[i].tensor, fresh.parameters()[i].tensor))
          << loaded.parameters()[i].name << " did not learn";
  }
}

}  // namespace
}  // namespace xsa::train
