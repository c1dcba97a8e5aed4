#include "xsa/diagnose/diagnose.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/progress.h"
#include "xsa/base/rng.h"
#include "xsa/base/signals.h"
#include "xsa/data/loader.h"

namespace xsa::diagnose {
namespace {

/// What the exclusion leaves along w below this share of |y| |w| is fp32's rounding of y - c w, and
/// counts as nothing: where z is short (the first token's is 0), its cosine would be noise.
constexpr double kRounding = 2e-6;

/// Query heads grouped under their key/value head: [B, H, T, ...] -> [B, K, G, T, ...].
at::Tensor grouped(const at::Tensor& x, std::int64_t key_heads) {
  return x.unflatten(1, {key_heads, x.size(1) / key_heads});
}

at::Tensor fp32(const at::Tensor& x) { return x.detach().to(at::kFloat); }

at::Tensor row_dot(const at::Tensor& a, const at::Tensor& b) { return (a * b).sum(-1); }

/// numerator / denominator, 0 where the denominator is.
at::Tensor ratio(const at::Tensor& numerator, const at::Tensor& denominator) {
  return at::where(denominator == 0, at::zeros_like(numerator), numerator / denominator);
}

/// The documents that tokens lie in: a row of B rows each, or those of one row.
struct Documents {
  std::int64_t count = 1;
  at::Tensor own, first;  // [T]: the document of a token, and the place of its first token
  double pairs;           // ordered pairs of different tokens of one document, in one row

  Documents(const at::Tensor& cu_seqlens, std::int64_t length) {
    const auto pairs_of = [](const at::Tensor& lengths) {
      return (lengths * (lengths - 1)).sum().item<double>();
    };
    if (!cu_seqlens.defined()) {
      first = at::zeros({length}, at::kLong);
      pairs = pairs_of(at::full({1}, length, at::kLong));
      return;
    }
    const at::Tensor ends = cu_seqlens.to(at::kLong), begins = ends.slice(0, 0, -1);
    const at::Tensor lengths = ends.slice(0, 1) - begins;
    count = lengths.numel();
    own = at::repeat_interleave(at::arange(count, at::kLong), lengths);
    first = begins.index_select(0, own);
    pairs = pairs_of(lengths);
  }

  /// x [B, K, T, X] summed over the tokens of each document: [B, K, documents, X].
  at::Tensor sum(const at::Tensor& x) const {
    if (!own.defined()) return x.sum(2, /*keepdim=*/true);
    return at::zeros({x.size(0), x.size(1), count, x.size(3)}, x.options()).index_add(2, own, x);
  }
};

/// Cosines summed over ordered pairs of values of one document: |sum u|^2 - sum |u|^2 with unit
/// vectors u. v [B, K, T, Dv] -> [K].
at::Tensor pair_cosines(const at::Tensor& v, const Documents& documents) {
  const at::Tensor unit = ratio(v, v.norm(2, -1, /*keepdim=*/true));
  const auto squares = [](const at::Tensor& x) {
    return x.square().sum({0, 2, 3}, /*keepdim=*/false, at::kDouble);
  };
  return squares(documents.sum(unit)) - squares(unit);
}

/// The share of c w that is removed, [B, H, T].
at::Tensor strength_of(const model::AttentionTrace& trace) {
  if (!trace.learned_strength.defined()) return at::full_like(trace.lse, trace.strength);
  const at::Tensor strength = fp32(trace.learned_strength);  // scalar, [H] or [B, H, T]
  return (strength.dim() == 1 ? strength.view({1, -1, 1}) : strength).expand_as(trace.lse);
}

}  // namespace

void LayerSums::add(const model::AttentionTrace& trace, const at::Tensor& cu_seqlens) {
  const c10::NoGradGuard no_grad;
  const std::int64_t key_heads = trace.k.size(1), length = trace.q.size(2);
  const auto by_head = [&](const at::Tensor& x) { return grouped(fp32(x), key_heads); };
  const at::Tensor q = by_head(trace.q), z = by_head(trace.z);                // [B, K, G, T, D]
  const at::Tensor lse = by_head(trace.lse), c = by_head(trace.c);            // [B, K, G, T]
  const at::Tensor strength = by_head(strength_of(trace));                    // [B, K, G, T]
  const at::Tensor keys = fp32(trace.k).unsqueeze(2);                         // [B, K, 1, n + T, D]
  const at::Tensor k = keys.narrow(3, trace.num_sink_keys, length);           // [B, K, 1, T, D]
  const at::Tensor v = fp32(trace.v).narrow(2, trace.num_sink_keys, length);  // [B, K, T, Dv]
  const at::Tensor w = v.unsqueeze(2);                                        // [B, K, 1, T, Dv]
  const Documents documents(cu_seqlens, length);

  const double scale = 1.0 / std::sqrt(static_cast<double>(trace.q.size(3)));
  const at::Tensor own_key = at::exp(row_dot(q, k) * scale - lse);
  at::Tensor first_key = at::exp(row_dot(q, k.index_select(3, documents.first)) * scale - lse);
  if (window_ > 0)
    first_key.masked_fill_(at::arange(length, at::kLong) - documents.first >= window_, 0);
  const at::Tensor sink_keys = keys.narrow(3, 0, trace.num_sink_keys);
  at::Tensor sinks =
      at::exp(q.matmul(sink_keys.transpose(3, 4)) * scale - lse.unsqueeze(-1)).sum(-1);
  if (trace.sink_logits.defined())
    sinks += at::exp(fp32(trace.sink_logits).view({key_heads, -1, 1}) - lse);

  const at::Tensor y = z + (strength * c).unsqueeze(-1) * w;
  const at::Tensor own_norm = w.norm(2, -1), y_norm = y.norm(2, -1), z_norm = z.norm(2, -1);
  const at::Tensor left = row_dot(z, w);
  const at::Tensor rounding = at::where(strength == 0, 0.0, kRounding) * y_norm * own_norm;
  const at::Tensor kept = left.masked_fill(left.abs() <= rounding, 0);

  const auto sum = [](const at::Tensor& x) {  // [B, K, G, T] -> [H]
    return x.sum({0, 3}, /*keepdim=*/false, at::kDouble).flatten();
  };
  const at::Tensor sums = at::stack({
      sum(strength),
      pair_cosines(v, documents).repeat_interleave(trace.q.size(1) / key_heads),
      sum(own_key),
      sum(ratio(row_dot(y, w), y_norm * own_norm)),
      sum(ratio(kept, z_norm * own_norm)),
      sum(first_key),
      sum(sinks),
      sum(ratio((strength * c).abs() * own_norm, y_norm).square()),
  });  // the strength's, then in the order of kQuantities
  sums_ = sums_.defined() ? sums_ + sums : sums;
  const auto rows = static_cast<double>(trace.q.size(0));
  tokens_ += rows * static_cast<double>(length);
  pairs_ += rows * documents.pairs;
}

Json LayerSums::means(std::int64_t layer) const {
  const auto with_means = [this](Json row, const at::Tensor& sums) {
    const auto mean = [&](std::size_t i, double count) {
      return count > 0 ? Json(sums[static_cast<std::int64_t>(i)].item<double>() / count) : Json();
    };
    row["strength"] = mean(0, tokens_);
    row["value_cosine"] = mean(1, pairs_);
    for (std::size_t i = 1; i < kQuantities.size(); ++i) row[kQuantities[i]] = mean(i + 1, tokens_);
    return row;
  };
  Json result = with_means({{"layer", layer}}, sums_.mean(1));
  result["heads"] = Json::array();
  for (std::int64_t head = 0; head < sums_.size(1); ++head)
    result["heads"].push_back(with_means({{"head", head}}, sums_.select(1, head)));
  return result;
}

namespace {

/// `rows` random sequences, [rows, context].
at::Tensor draw(const data::TokenStream& stream, std::int64_t rows, std::int64_t context,
                Rng& rng) {
  at::Tensor tokens = at::empty({rows, context}, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = static_cast<std::int64_t>(
        rng.below(static_cast<std::uint64_t>(stream.size() - context + 1)));
    stream.read(begin, {tokens.mutable_data_ptr<std::int64_t>() + row * context,
                        static_cast<std::size_t>(context)});
  }
  return tokens;
}

/// cu_seqlens of tokens [B, T]; undefined where each row is seen whole.
at::Tensor documents_of(const at::Tensor& tokens, std::optional<text::Token> opener) {
  if (!opener) return {};
  return at::tensor(data::document_borders({tokens.const_data_ptr<std::int64_t>(),
                                            static_cast<std::size_t>(tokens.numel())},
                                           tokens.size(1), *opener),
                    at::kInt);
}

}  // namespace

const data::Split& split_of(const data::Dataset& dataset, const DiagnoseConfig& config) {
  return config.split == "train" ? dataset.train : dataset.validation;
}

Json diagnose(const model::Gpt& model, const data::Split& split, const DiagnoseConfig& config,
              bool show_progress) {
  const c10::NoGradGuard no_grad;
  const std::int64_t context = model.config().context, layers = model.config().layers;
  check_usage(split.tokens.size() >= context,
              "diagnose: expected a text of at least one sequence (", context, " tokens), got ",
              split.tokens.size(), "; give a longer text");

  Rng rng(static_cast<std::uint64_t>(config.seed));
  std::vector<LayerSums> sums(static_cast<std::size_t>(layers), LayerSums(model.config().window));
  std::optional<Progress> progress;
  if (show_progress) progress.emplace("diagnose", config.sequences, "sequence");
  for (std::int64_t done = 0; done < config.sequences;) {
    if (const int signal = stop_signal())
      throw Interrupted(signal, cat("diagnose: stopped after ", done, " of ", config.sequences,
                                    " sequences; the model is untouched, run the command again"));
    const std::int64_t rows = std::min(config.batch_size, config.sequences - done);
    const at::Tensor tokens = draw(split.tokens, rows, context, rng);
    const at::Tensor documents = documents_of(tokens, split.document_opener);
    model.hidden(
        tokens,
        [&](const model::AttentionTrace& trace) {
          sums[static_cast<std::size_t>(trace.layer)].add(trace, documents);
        },
        documents);
    done += rows;
    if (progress) progress->update(done, "");
  }
  if (progress) progress->finish();

  Json result = {{"attention", model.config().attention},
                 {"sequences", config.sequences},
                 {"context", context},
                 {"split", config.split},
                 {"seed", config.seed},
                 {"layers", Json::array()}};
  for (std::int64_t layer = 0; layer < layers; ++layer)
    result["layers"].push_back(sums[static_cast<std::size_t>(layer)].means(layer));
  return result;
}

}  // namespace xsa::diagnose
