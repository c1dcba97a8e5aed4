#include "xsa/study/training_memory.h"

#include <algorithm>
#include <map>
#include <string>

#include "xsa/model/parameters.h"

namespace xsa::study {
namespace {

constexpr std::int64_t kFloat = 4, kLong = 8;

/// Allocations and releases of one step, in the order of the program. Widths are floats a token.
class Step {
 public:
  Step(const model::ModelConfig& config, const Load& load)
      : config_(config),
        load_(load),
        tokens_(load.rows * config.context),
        width_(config.width),
        inner_(config.inner_width()),
        heads_width_(config.heads * config.head_dim),
        qkv_width_(heads_width_ + 2 * config.key_heads() * config.head_dim) {
    for (const model::ParameterSpec& spec : model::parameter_specs(config)) {
      std::int64_t& size = parameter_bytes_[spec.name] = kFloat;
      for (const std::int64_t n : spec.sizes) size *= n;
    }
  }

  TrainingMemory run() {
    now_.weights = parameters("");
    now_.optimizer = 2 * now_.weights;
    now_.other = 2 * tokens_ * kLong;
    if (config_.position == "rope") now_.other += config_.context * config_.head_dim * kFloat;
    // A third pass is as the second.
    for (std::int64_t pass = 0; pass < std::min<std::int64_t>(load_.passes, 2); ++pass) {
      first_pass_ = pass == 0;
      forward();
      loss();
      backward();
    }
    peak_.most_logits = logits_bytes();
    return peak_;
  }

 private:
  static constexpr std::int64_t kStatistics = 2;  // a norm's mean and rstd

  void hold(std::int64_t& kind, std::int64_t bytes) {
    kind += bytes;
    if (now_.total() > peak_.total()) peak_ = now_;
  }
  void hold(std::int64_t width) { hold(now_.activations, width * tokens_ * kFloat); }
  void release(std::int64_t width) { now_.activations -= width * tokens_ * kFloat; }

  /// Bytes of the parameters whose names begin so.
  std::int64_t parameters(const std::string& prefix) const {
    std::int64_t bytes = 0;
    for (auto entry = parameter_bytes_.lower_bound(prefix);
         entry != parameter_bytes_.end() && entry->first.starts_with(prefix); ++entry)
      bytes += entry->second;
    return bytes;
  }

  /// The first pass's gradients stay; a later one's are added to them and go.
  void gradient(std::int64_t bytes) {
    hold(now_.gradients, bytes);
    if (!first_pass_) now_.gradients -= bytes;
  }
  void gradient(const std::string& prefix) { gradient(parameters(prefix)); }

  void forward() {
    hold(width_);  // the embeddings: the first norm's input
    if (config_.position == "learned") {
      hold(width_);
      release(width_);
    }
    if (config_.embedding_norm) hold(width_ + kStatistics);
    hold(width_ + kStatistics);
    gate_norm();
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      attention();
      hold(width_);  // what attention adds
      add_norm();
      hold(inner_);  // before GELU
      hold(inner_);  // behind it
      hold(width_);  // what the feed-forward layer adds
      add_norm();
      release(2 * width_);
    }
  }
  void add_norm() {
    hold(2 * width_ + kStatistics);  // the sum, its norm
    gate_norm();
  }
  /// Behind a norm: W_down's output, its silu, W_up's output, the sigmoid, the product.
  void gate_norm() {
    if (config_.gated_norm == 0) return;
    hold(2 * config_.gated_norm);
    hold(2 * width_);
    release(width_);
    hold(width_);
  }
  void attention() {
    hold(qkv_width_);
    if (learns_token_strength()) hold(config_.heads);
    hold_with_sinks();
    hold(heads_width_ + 2 * config_.heads);  // z, lse, c
    if (!config_.output_gate) return;
    hold(2 * heads_width_);  // before the sigmoid and behind it
    release(heads_width_);
    hold(heads_width_);  // the product
  }
  bool learns_token_strength() const { return config_.learned_strength == "token"; }
  /// Keys and values that follow the sinks are copies.
  std::int64_t sinks_bytes() const {
    if (config_.sink_tokens == 0) return 0;
    return 2 * config_.key_heads() * config_.head_dim *
           (tokens_ + load_.rows * config_.sink_tokens) * kFloat;
  }
  void hold_with_sinks() { hold(now_.activations, sinks_bytes()); }

  void loss() {
    hold(now_.logits, logits_bytes());
    hold(width_);                        // the hidden states' gradient
    hold(now_.gradients, head_bytes());  // the head's, until it is handed on
    now_.logits -= logits_bytes();
    release(width_);  // the hidden states
  }
  std::int64_t logits_bytes() const {
    return std::min(load_.loss_chunk, tokens_) * config_.vocab_size * kFloat;
  }
  std::int64_t head_bytes() const { return config_.vocab_size * width_ * kFloat; }

  void backward() {
    // An untied head's gradient finds its place at once; a tied one waits for the embedding's.
    if (!config_.tied_head && !first_pass_) now_.gradients -= head_bytes();
    add_norm_backward("transformer.ln_f", /*sum_has_gradient=*/false);
    for (std::int64_t layer = config_.layers - 1; layer >= 0; --layer) {
      const std::string block = model::block_prefix(layer);
      feed_forward_backward(block);
      add_norm_backward(block + "ln_2", true);
      attention_backward(block);
      if (layer > 0) add_norm_backward(model::block_prefix(layer) + "ln_1", true);
    }
    embedding_backward();
  }

  /// In: the gradients of the norm and, but for the last, of the sum. Out: one, of both summands.
  void add_norm_backward(const std::string& norm, bool sum_has_gradient) {
    gate_norm_backward();
    hold(width_);
    gradient(norm);
    release(width_ + kStatistics);  // the sum; the norm went with the matrix that read it
    release(sum_has_gradient ? 2 * width_ : width_);
  }

  /// The product's gradient makes place for its input's.
  void gate_norm_backward() {
    if (config_.gated_norm == 0) return;
    hold(2 * width_);     // of both factors
    release(width_);      // of the product
    hold(width_);         // of the sigmoid's input
    release(2 * width_);  // the sigmoid and its gradient
    hold(width_);         // what comes by W_down
    release(2 * width_ + 2 * config_.gated_norm);
    release(width_);  // the norm
  }

  /// A branch: the sum's gradient stays for the residual, that of the branch's input is added.
  void feed_forward_backward(const std::string& block) {
    hold(inner_);
    gradient(block + "mlp.c_proj");
    release(inner_);  // behind GELU
    hold(inner_);
    release(2 * inner_);  // before GELU, the gradient behind it
    hold(width_);
    gradient(block + "mlp.c_fc");
    release(inner_ + width_);
  }
  void attention_backward(const std::string& block) {
    hold(heads_width_);
    gradient(block + "attn.c_proj");
    if (config_.output_gate) gate_backward(block);
    hold(qkv_width_);  // of q, k and v
    hold_with_sinks();
    now_.activations -= sinks_bytes();
    release(qkv_width_ + heads_width_ + 2 * config_.heads);
    release(heads_width_);
    if (learns_token_strength()) release(config_.heads);
    for (const char* variant : {"attn.sink", "attn.strength", "attn.c_strength"})
      gradient(block + variant);
    hold(qkv_width_);  // of what they were cut from
    release(qkv_width_);
    now_.activations -= sinks_bytes();
    hold(width_);
    gradient(block + "attn.c_attn");
    release(qkv_width_ + width_);
    if (config_.output_gate) release(width_);
  }
  /// In: the product's gradient. Out: z's, and the normalised input's by way of the gate.
  void gate_backward(const std::string& block) {
    release(heads_width_);  // the product
    hold(2 * heads_width_);
    release(heads_width_);
    hold(heads_width_);
    release(2 * heads_width_);  // the sigmoid and its gradient
    hold(width_);
    gradient(block + "attn.c_gate");
    release(heads_width_);
  }

  void embedding_backward() {
    gate_norm_backward();
    hold(width_);
    gradient(model::block_prefix(0) + "ln_1");
    release(2 * width_ + kStatistics);
    if (config_.embedding_norm) {
      hold(width_);
      gradient("transformer.ln_e");
      release(2 * width_ + kStatistics);
    }
    gradient(model::kPositions);
    gradient(model::kEmbedding);
    if (config_.tied_head) now_.gradients -= head_bytes();
    release(2 * width_);
  }

  const model::ModelConfig& config_;
  const Load& load_;
  const std::int64_t tokens_, width_, inner_, heads_width_, qkv_width_;
  std::map<std::string, std::int64_t> parameter_bytes_;  // by name
  bool first_pass_ = true;
  TrainingMemory now_, peak_;
};

}  // namespace

TrainingMemory training_memory(const model::ModelConfig& config, const Load& load) {
  return Step(config, load).run();
}

}  // namespace xsa::study
