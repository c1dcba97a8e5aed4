// How a model is trained; the schedule is the paper's: linear warm-up, cosine to a tenth of the
// peak.
#pragma once

#include <cstdint>
#include <string>

#include "xsa/base/fields.h"
#include "xsa/data/dataset.h"
#include "xsa/model/config.h"

namespace xsa::train {

struct TrainConfig {
  std::int64_t steps = 300;
  std::int64_t batch_size = 12;
  std::int64_t accumulation = 1;
  double lr = 2e-3;
  double min_lr_ratio = 0.1;
  std::int64_t warmup_steps = 30;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_eps = 1e-8;
  double grad_clip = 1.0;
  std::int64_t seed = 1337;
  std::int64_t threads = 0;
  std::int64_t log_every = 10;
  std::int64_t eval_every = 50;
  std::int64_t eval_rows = 64;
  std::string eval_texts;
  std::string eval_tasks;
  std::string eval_task_data;
  std::int64_t eval_limit = 100;
  std::int64_t diagnose_every = 0;
  std::int64_t checkpoint_every = 100;
  std::int64_t keep_checkpoints = 2;
  bool keep_best = true;
  std::string from;
  bool tensorboard = true;
  std::int64_t loss_chunk = 1024;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("steps", self.steps, "optimizer steps", at_least(1));
    field("batch_size", self.batch_size, "sequences of one forward and backward", at_least(1));
    field("accumulation", self.accumulation, "forward and backward passes of one step",
          at_least(1));
    field("lr", self.lr, "peak learning rate", above(0));
    field("min_lr_ratio", self.min_lr_ratio, "final learning rate as a share of the peak",
          between(0, 1));
    field("warmup_steps", self.warmup_steps, "steps of linear warm-up", at_least(0));
    field("weight_decay", self.weight_decay, "AdamW's decay, of matrices only", at_least(0));
    field("beta1", self.beta1, "AdamW's first moment", between(0, 0.99999));
    field("beta2", self.beta2, "AdamW's second moment", between(0, 0.99999));
    field("adam_eps", self.adam_eps, "AdamW's epsilon", above(0));
    field("grad_clip", self.grad_clip, "largest gradient norm; 0: no clipping", at_least(0));
    field("seed", self.seed, "of initial weights and data order", at_least(0));
    // Another number of threads may change the last bits: the run says so.
    field("threads", self.threads, "CPU threads; 0: one for each core that the process may use",
          at_least(0), Effect::kNone);
    field("log_every", self.log_every, "steps between lines of metrics", at_least(1),
          Effect::kNone);
    field("eval_every", self.eval_every,
          "steps between validations, and all that is evaluated; the end is always one",
          at_least(1), Effect::kNone);
    // What is measured counts by what it was: conditions() has the rows, TrainOptions::measured the
    // rest.
    field("eval_rows", self.eval_rows, "validation sequences; 0: all", at_least(0), Effect::kNone);
    field("eval_texts", self.eval_texts,
          "text files, with commas between, whose perplexity is measured as well", {},
          Effect::kNone);
    field("eval_tasks", self.eval_tasks,
          "tasks, with commas between, that are scored as well (xsa eval --help lists them)", {},
          Effect::kNone);
    field("eval_task_data", self.eval_task_data, "the folder of their records", {}, Effect::kNone);
    field("eval_limit", self.eval_limit,
          "records of each task, windows of each text, the first ones; 0: all", at_least(0),
          Effect::kNone);
    field("diagnose_every", self.diagnose_every,
          "steps between diagnoses (table [diagnose]), of which the end is one; 0: none",
          at_least(0), Effect::kNone);
    field("checkpoint_every", self.checkpoint_every,
          "steps between checkpoints; the end is always one", at_least(1), Effect::kNone);
    field("keep_checkpoints", self.keep_checkpoints, "newest checkpoints kept; 0: all", at_least(0),
          Effect::kNone);
    field("keep_best", self.keep_best,
          "saves and keeps the checkpoint of the lowest validation loss beside them", {},
          Effect::kNone);
    // Known by its content: a run's conditions have the hash of the weights.
    field(
        "from", self.from,
        "a run, a checkpoint or a GPT-2 of Hugging Face's whose weights training begins with; its "
        "[model] and tokenizer come along",
        {}, Effect::kNone);
    field("tensorboard", self.tensorboard, "an event file for TensorBoard beside metrics.jsonl", {},
          Effect::kNone);
    field("loss_chunk", self.loss_chunk, "rows of logits held at once", at_least(1));
  }

  void validate() const;
};

/// Learning rate of step 0, 1, ... (XSA's recipe; docs/training.md).
double learning_rate(const TrainConfig& config, std::int64_t step);

/// All that one training run depends on.
struct RunConfig {
  model::ModelConfig model;
  data::DataConfig data;
  TrainConfig train;
};
/// {"model": {...}, "data": {...}, "train": {...}} and back. An unknown table or key is a
/// UsageError.
Json to_json(const RunConfig& config);
RunConfig run_config_from_json(const Json& json);
/// With the vocabulary's size of its tokenizer where that was 0. Throws UsageError for a field out
/// of range or fields that do not fit together. Touches no file.
RunConfig resolve(const RunConfig& config);

}  // namespace xsa::train
