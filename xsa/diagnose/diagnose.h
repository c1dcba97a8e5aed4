// Fig. 1 of the paper for any model: how much of its attention only repeats its own value? And
// where does it look instead: at the first key, at sinks, at itself?
// Everything comes from the operator's lse and c, so the cost is linear in the length: no T x T
// matrix is made. docs/diagnose.md defines the quantities.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>

#include "xsa/base/fields.h"
#include "xsa/data/dataset.h"
#include "xsa/model/gpt.h"

namespace xsa::diagnose {

struct DiagnoseConfig {
  std::int64_t sequences = 64;
  std::int64_t batch_size = 8;
  std::string split = "train";
  std::int64_t seed = 1337;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("sequences", self.sequences,
          "random sequences that are averaged over; the paper, and xsa diagnose: 1024",
          at_least(1));
    field("batch_size", self.batch_size, "sequences of one forward pass", at_least(1),
          Effect::kNone);
    field("split", self.split, "where they are drawn from; the paper: train",
          one_of({"train", "validation"}));
    field("seed", self.seed, "of the draw", at_least(0));
  }
};

inline constexpr std::int64_t kPaperSequences = 1024;

/// What is measured in each layer and head, by its name in JSON.
inline constexpr std::array kQuantities = {
    "value_cosine",   "attention_diagonal", "output_value_cosine", "final_value_cosine",
    "first_key_mass", "sink_mass",          "removed_share",
};

/// Sums of kQuantities over tokens and sequences of one layer, head by head.
class LayerSums {
 public:
  /// `window` as in ModelConfig.
  explicit LayerSums(std::int64_t window = 0) : window_(window) {}

  /// A causal layer whose last query owns the last key. Documents as in Gpt::hidden.
  void add(const model::AttentionTrace& trace, const at::Tensor& cu_seqlens = {});
  /// One element of diagnose.json's "layers" (docs/run-folder.md); null for a mean over nothing.
  Json means(std::int64_t layer) const;

 private:
  std::int64_t window_;
  at::Tensor sums_;                // [1 + quantities, H] double; the strength's first
  double tokens_ = 0, pairs_ = 0;  // of one head: its queries, its ordered pairs of values
};

/// The text that a diagnosis asks for.
const data::Split& split_of(const data::Dataset& dataset, const DiagnoseConfig& config);

/// diagnose.json's content for `model` on random sequences of `split`, each as long as the model's
/// context, packed where the split's are. Throws UsageError if the text is shorter than one
/// sequence, Interrupted at a signal to stop.
Json diagnose(const model::Gpt& model, const data::Split& split, const DiagnoseConfig& config,
              bool show_progress = true);

}  // namespace xsa::diagnose
