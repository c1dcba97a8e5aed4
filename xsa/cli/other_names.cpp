#include "xsa/cli/other_names.h"

#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"

namespace xsa::cli {
namespace {

/// What others call it, and what it is here: a flag or setting ("--output"), the name of an
/// argument without a flag ("recipe"), or advice, which has spaces. Of several rows with one word,
/// the first counts that the command knows.
struct OtherName {
  std::string_view theirs, ours;
};

constexpr std::string_view kCpuAlone = "xsa computes on CPUs alone: leave it out";
constexpr std::string_view kFloat32 = "training is in float32: leave it out";
constexpr std::string_view kOneProcess = "one process does all: leave it out";

constexpr OtherName kOtherNames[] = {
    // What runs.
    {"config", "recipe"},
    {"config_file", "recipe"},
    {"config_name", "recipe"},
    {"recipe", "recipe"},
    {"model_name", "recipe"},
    {"model", "model"},
    {"model", "checkpoint"},
    {"model_args", "model"},
    {"model_name_or_path", "model"},
    {"model_name_or_path", "--from"},
    {"pretrained", "model"},
    {"pretrained", "--from"},
    {"checkpoint", "model"},
    {"checkpoint", "checkpoint"},
    {"checkpoint", "--from"},
    {"checkpoint_dir", "model"},
    {"checkpoint_dir", "checkpoint"},
    {"initial_checkpoint_dir", "--from"},
    {"init_from", "--from"},
    {"init_from", "--resume"},
    {"resume_from_checkpoint", "--resume"},
    {"auto_resume", "--resume"},
    {"continue", "--resume"},
    {"overwrite_output_dir", "--overwrite"},
    {"force", "--overwrite"},
    {"run_name", "--name"},
    {"wandb_run_name", "--name"},
    {"exp_name", "--name"},
    {"out_dir", "--output"},
    {"out", "--output"},
    {"output_dir", "--output"},
    {"output_path", "--output"},
    {"save_dir", "--output"},
    {"out_dir", "model"},  // of nanoGPT's sample.py
    // Data.
    {"data", "--text"},
    {"data_dir", "--text"},
    {"data_path", "--text"},
    {"dataset", "--text"},
    {"dataset_name", "--text"},
    {"train_file", "--text"},
    {"train_data", "--text"},
    {"input_bin", "--text"},
    {"input", "source"},
    {"tokenizer_name", "--tokenizer"},
    {"tokenizer_name", "--data.tokenizer"},
    {"tokenizer_path", "--data.tokenizer"},
    {"val_fraction", "--validation-fraction"},
    {"val_fraction", "--data.validation_fraction"},
    // Length and batches.
    {"max_iters", "--train.steps"},
    {"max_steps", "--train.steps"},
    {"num_steps", "--train.steps"},
    {"n_steps", "--train.steps"},
    {"iters", "--train.steps"},
    {"iterations", "--train.steps"},
    {"num_iterations", "--train.steps"},
    {"epochs", "training is counted in steps, not in epochs: --train.steps"},
    {"num_epochs", "training is counted in steps, not in epochs: --train.steps"},
    {"num_train_epochs", "training is counted in steps, not in epochs: --train.steps"},
    {"max_tokens", "training is counted in steps, not in tokens: --train.steps"},
    {"micro_batch_size", "--train.batch_size"},
    {"global_batch_size", "--train.batch_size"},
    {"train_batch_size", "--train.batch_size"},
    {"device_batch_size", "--train.batch_size"},
    {"per_device_train_batch_size", "--train.batch_size"},
    {"gradient_accumulation_steps", "--train.accumulation"},
    {"gradient_accumulation_iters", "--train.accumulation"},
    {"grad_accum_steps", "--train.accumulation"},
    {"accumulate_grad_batches", "--train.accumulation"},
    // Optimizer.
    {"learning_rate", "--train.lr"},
    {"max_lr", "--train.lr"},
    {"min_lr", "--train.min_lr_ratio, a share of the peak"},
    {"warmup_iters", "--train.warmup_steps"},
    {"warmup", "--train.warmup_steps"},
    {"lr_warmup_steps", "--train.warmup_steps"},
    {"num_warmup_steps", "--train.warmup_steps"},
    {"warmup_ratio", "--train.warmup_steps, a number of steps"},
    {"lr_decay_iters", "the rate falls until the last step: --train.steps, --train.min_lr_ratio"},
    {"decay_lr", "the rate falls until the last step: --train.steps, --train.min_lr_ratio"},
    {"lr_scheduler_type",
     "the rate falls until the last step: --train.steps, --train.min_lr_ratio"},
    {"adam_beta1", "--train.beta1"},
    {"adam_beta2", "--train.beta2"},
    {"adam_epsilon", "--train.adam_eps"},
    {"max_grad_norm", "--train.grad_clip"},
    {"max_norm", "--train.grad_clip"},
    {"gradient_clip_val", "--train.grad_clip"},
    {"optimizer", "the optimizer is AdamW: --train.beta1, --train.beta2, --train.weight_decay"},
    {"optim", "the optimizer is AdamW: --train.beta1, --train.beta2, --train.weight_decay"},
    {"dropout", "there is no dropout: leave it out"},
    // Now and then.
    {"eval.max_iters", "--train.eval_rows"},
    {"eval_interval", "--train.eval_every"},
    {"eval_steps", "--train.eval_every"},
    {"val_loss_every", "--train.eval_every"},
    {"eval.interval", "--train.eval_every"},
    {"eval_iters", "--train.eval_rows"},
    {"log_interval", "--train.log_every"},
    {"logging_steps", "--train.log_every"},
    {"save_interval", "--train.checkpoint_every"},
    {"save_steps", "--train.checkpoint_every"},
    {"save_total_limit", "--train.keep_checkpoints"},
    {"wandb_log", "--train.tensorboard=true writes curves for TensorBoard"},
    {"wandb_project", "--train.tensorboard=true writes curves for TensorBoard"},
    {"report_to", "--train.tensorboard=true writes curves for TensorBoard"},
    {"logger_name", "--train.tensorboard=true writes curves for TensorBoard"},
    {"random_seed", "--seed"},
    {"random_seed", "--train.seed"},
    // The machine.
    {"num_threads", "--threads"},
    {"num_threads", "--train.threads"},
    {"threads", "--train.threads"},
    {"num_workers", "--threads"},
    {"num_workers", "--train.threads"},
    {"device", kCpuAlone},
    {"devices", "--gpus"},
    {"devices", kCpuAlone},
    {"accelerator", kCpuAlone},
    {"use_cpu", kCpuAlone},
    {"no_cuda", kCpuAlone},
    {"gpu", kCpuAlone},
    {"gpus", kCpuAlone},
    {"cuda", kCpuAlone},
    {"compile", "nothing is to be compiled: leave it out"},
    {"torch_compile", "nothing is to be compiled: leave it out"},
    {"dtype", kFloat32},
    {"precision", "--dtype"},
    {"precision", kFloat32},
    {"bf16", kFloat32},
    {"fp16", kFloat32},
    {"backend", kOneProcess},
    {"strategy", kOneProcess},
    {"num_nodes", kOneProcess},
    // The model.
    {"block_size", "--model.context"},
    {"n_ctx", "--model.context"},
    {"n_positions", "--model.context"},
    {"seq_len", "--model.context"},
    {"sequence_length", "--model.context"},
    {"max_seq_len", "--model.context"},
    {"max_seq_length", "--model.context"},
    {"max_position_embeddings", "--model.context"},
    {"n_layer", "--model.layers"},
    {"n_layers", "--model.layers"},
    {"num_layers", "--model.layers"},
    {"num_hidden_layers", "--model.layers"},
    {"n_head", "--model.heads"},
    {"n_heads", "--model.heads"},
    {"num_heads", "--model.heads"},
    {"num_attention_heads", "--model.heads"},
    {"n_kv_heads", "--model.kv_heads"},
    {"n_query_groups", "--model.kv_heads"},
    {"num_key_value_heads", "--model.kv_heads"},
    {"head_size", "--model.head_dim"},
    {"n_embd", "--model.width"},
    {"d_model", "--model.width"},
    {"hidden_size", "--model.width"},
    {"intermediate_size", "--model.feed_forward_width"},
    {"n_inner", "--model.feed_forward_width"},
    {"d_ff", "--model.feed_forward_width"},
    {"rope_theta", "--model.rope_base"},
    {"sliding_window", "--model.window"},
    {"sliding_window_size", "--model.window"},
    {"tie_word_embeddings", "--model.tied_head"},
    {"initializer_range", "--model.init_std"},
    {"layer_norm_epsilon", "--model.norm_eps"},
    {"padded_vocab_size", "--model.vocab_size"},
    {"xsa", "--model.attention=exclusive"},
    {"exclusive", "--model.attention=exclusive"},
    // Sampling and evaluation.
    {"max_new_tokens", "--max-tokens"},
    {"num_samples", "--samples"},
    {"num_return_sequences", "--samples"},
    {"start", "--prompt"},
    {"num_fewshot", "the tasks are asked without examples: leave it out"},
};

/// "--batch-size" -> "batch_size".
std::string plain(std::string_view flag) {
  std::string name(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::ranges::replace(name, '-', '_');
  return name;
}

/// "train.steps" -> "steps".
std::string without_table(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool is_setting(const std::string& known) { return known.find('.') != std::string::npos; }

std::string with_value(const std::string& ours, const std::string& given) {
  return is_setting(ours) ? ours + given : ours;
}

/// What a row says to a command that knows these; "" if it does not concern it.
std::string meaning(const OtherName& row, const std::string& given,
                    const std::vector<std::string>& known) {
  const std::string ours(row.ours), flag = ours.substr(0, ours.find_first_of("=, "));
  const bool is_known = std::ranges::find(known, flag) != known.end();
  if (!ours.starts_with("--")) {
    const bool is_advice = ours.find(' ') != std::string::npos;
    if (is_advice) return cat(" (", ours, ")");
    const std::string as = given.empty() ? "" : ": " + given.substr(1);
    return is_known ? cat(" (the ", ours, " is named without a flag", as, ")") : "";
  }
  if (!is_known) return "";
  return cat(" (here it is ", flag == ours ? with_value(ours, given) : ours, ")");
}

}  // namespace

std::string what_is_meant(std::string_view flag, const std::string& given,
                          const std::vector<std::string>& known) {
  const std::string name = plain(flag), last = without_table(name);
  const auto same = [&](const std::string& ours) {
    return ours.starts_with("--") && without_table(plain(ours)) == last;
  };
  const auto near = std::ranges::find_if(known, [&](const std::string& ours) {
    return ours.starts_with("--") && !is_setting(ours) && edit_distance(plain(ours), name) <= 1;
  });
  const auto setting = std::ranges::find_if(
      known, [&](const std::string& ours) { return is_setting(ours) && same(ours); });
  if (near != known.end() && plain(*near) == name) return cat(" (here it is ", *near, ")");
  if (near != known.end() && setting != known.end())
    return cat(" (did you mean '", *near, "'? or ", with_value(*setting, given), ")");
  if (near != known.end()) return cat(" (did you mean '", *near, "'?)");
  for (const std::string& theirs : {name, last}) {
    if (theirs == last && setting != known.end())
      return cat(" (here it is ", with_value(*setting, given), ")");
    for (const OtherName& row : kOtherNames) {
      if (row.theirs != theirs) continue;
      const std::string text = meaning(row, given, known);
      if (!text.empty()) return text;
    }
  }
  // The nearest, with its table or without it.
  std::vector<std::string> candidates;
  for (const std::string& ours : known) {
    if (!ours.starts_with("--")) continue;
    candidates.push_back(ours);
    if (is_setting(ours)) candidates.push_back("--" + without_table(ours));
  }
  const std::string found = nearest("--" + name, candidates);
  if (found.empty()) return "";
  const auto full = std::ranges::find_if(known, [&](const std::string& ours) {
    return ours == found || (is_setting(ours) && "--" + without_table(ours) == found);
  });
  return cat(" (did you mean '", *full, "'?)");
}

}  // namespace xsa::cli
