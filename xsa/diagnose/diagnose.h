// Fig. 1 of the paper for any model: how much of its attention only repeats its own value?
// Everything comes from the operator's lse and c, so the cost is linear in the length: no T x T
// matrix is made.
#pragma once

#include <cstdint>
#include <string>

#include "xsa/base/fields.h"
#include "xsa/data/shard.h"
#include "xsa/model/gpt.h"

namespace xsa::diagnose {

struct DiagnoseConfig {
  std::int64_t sequences = 64;
  std::int64_t batch_size = 8;
  std::string split = "train";
  std::int64_t seed = 1337;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("sequences", self.sequences, "random sequences that are averaged over; the paper: 1024",
          at_least(1));
    field("batch_size", self.batch_size, "sequences of one forward pass", at_least(1));
    field("split", self.split, "where they are drawn from; the paper: train",
          one_of({"train", "validation"}));
    field("seed", self.seed, "of the draw", at_least(0));
  }
};

/// Sums of Fig. 1's quantities over heads, tokens and sequences of one layer.
class LayerSums {
 public:
  /// A causal layer without key offset: q [B, H, T, D], k [B, K, T, D], v [B, K, T, Dv], z [B, H,
  /// T, Dv].
  void add(const model::AttentionTrace& trace);
  /// One element of diagnose.json's "layers" (docs/run-folder.md); null for a mean over nothing.
  Json means(std::int64_t layer, double strength) const;

 private:
  double value_cosine_ = 0, attention_diagonal_ = 0, output_value_cosine_ = 0,
         final_value_cosine_ = 0;
  double value_sets_ = 0,
         tokens_ = 0;  // (batch, key head) pairs of T >= 2 values; (batch, head, token) triples
};

/// diagnose.json's content for `model` on random sequences of `stream`, each as long as the model's
/// context. Throws UsageError if the stream is shorter than one sequence.
Json diagnose(const model::Gpt& model, const data::TokenStream& stream,
              const DiagnoseConfig& config);

}  // namespace xsa::diagnose
