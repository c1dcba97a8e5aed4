#include "xsa/diagnose/diagnose.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/progress.h"
#include "xsa/base/rng.h"
#include "xsa/base/signals.h"

namespace xsa::diagnose {
namespace {

/// What the exclusion leaves along w below this share of |y| |w| is fp32's rounding of y - c w, and
/// counts as nothing: where z is short (the first token's is 0), its cosine would be noise.
constexpr double kRounding = 2e-6;

/// Query heads grouped under their key/value head: [B, H, T, X] -> [B, K, G, T, X].
at::Tensor grouped(const at::Tensor& x, std::int64_t key_heads) {
  return x.unflatten(1, {key_heads, x.size(1) / key_heads});
}

at::Tensor row_dot(const at::Tensor& a, const at::Tensor& b) { return (a * b).sum(-1); }

double total(const at::Tensor& x) { return x.sum(at::kDouble).item<double>(); }

/// numerator / denominator, 0 where the denominator is.
at::Tensor ratio(const at::Tensor& numerator, const at::Tensor& denominator) {
  return at::where(denominator == 0, at::zeros_like(numerator), numerator / denominator);
}

}  // namespace

void LayerSums::add(const model::AttentionTrace& trace) {
  const c10::NoGradGuard no_grad;
  const std::int64_t key_heads = trace.v.size(1), length = trace.v.size(2);
  const auto fp32 = [](const at::Tensor& x) { return x.detach().to(at::kFloat); };
  const at::Tensor v = fp32(trace.v);                                       // [B, K, T, Dv]
  const at::Tensor w = v.unsqueeze(2);                                      // [B, K, 1, T, Dv]
  const at::Tensor z = grouped(fp32(trace.z), key_heads);                   // [B, K, G, T, Dv]
  const at::Tensor c = trace.c.detach().unflatten(1, {key_heads, -1});      // [B, K, G, T]
  const at::Tensor lse = trace.lse.detach().unflatten(1, {key_heads, -1});  // [B, K, G, T]

  // Mean pairwise cosine of T unit vectors u: (|sum u|^2 - sum |u|^2) / (T (T - 1)).
  if (length >= 2) {
    const at::Tensor value_norm = v.norm(2, -1, /*keepdim=*/true);
    const at::Tensor unit = ratio(v, value_norm);
    const at::Tensor pairs = unit.sum(2).square().sum(-1) - unit.square().sum({2, 3});
    value_cosine_ += total(pairs) / static_cast<double>(length * (length - 1));
    value_sets_ += static_cast<double>(v.size(0) * key_heads);
  }

  const double scale = 1.0 / std::sqrt(static_cast<double>(trace.q.size(3)));
  const at::Tensor own_score =
      row_dot(grouped(fp32(trace.q), key_heads), fp32(trace.k).unsqueeze(2)) * scale;
  attention_diagonal_ += total(at::exp(own_score - lse));

  const at::Tensor y = z + (trace.strength * c).unsqueeze(-1) * w;
  const at::Tensor own_norm = w.norm(2, -1), y_norm = y.norm(2, -1), z_norm = z.norm(2, -1);
  output_value_cosine_ += total(ratio(row_dot(y, w), y_norm * own_norm));
  const at::Tensor left = row_dot(z, w);
  const double rounding = trace.strength == 0 ? 0 : kRounding;
  const at::Tensor nothing = left.abs() <= rounding * y_norm * own_norm;
  final_value_cosine_ +=
      total(ratio(at::where(nothing, at::zeros_like(left), left), z_norm * own_norm));
  tokens_ += static_cast<double>(c.numel());
}

Json LayerSums::means(std::int64_t layer, double strength) const {
  const auto mean = [](double sum, double count) { return count > 0 ? Json(sum / count) : Json(); };
  return {{"layer", layer},
          {"strength", strength},
          {"value_cosine", mean(value_cosine_, value_sets_)},
          {"attention_diagonal", mean(attention_diagonal_, tokens_)},
          {"output_value_cosine", mean(output_value_cosine_, tokens_)},
          {"final_value_cosine", mean(final_value_cosine_, tokens_)}};
}

Json diagnose(const model::Gpt& model, const data::TokenStream& stream,
              const DiagnoseConfig& config) {
  const c10::NoGradGuard no_grad;
  const std::int64_t context = model.config().context, layers = model.config().layers;
  check_usage(stream.size() >= context, "diagnose: expected a text of at least one sequence (",
              context, " tokens), got ", stream.size(), "; give a longer text");

  Rng rng(static_cast<std::uint64_t>(config.seed));
  std::vector<LayerSums> sums(static_cast<std::size_t>(layers));
  Progress progress("diagnose", config.sequences, "sequence");
  for (std::int64_t done = 0; done < config.sequences;) {
    if (const int signal = stop_signal())
      throw Interrupted(signal, cat("diagnose: stopped after ", done, " of ", config.sequences,
                                    " sequences; the model is untouched, run the command again"));
    const std::int64_t rows = std::min(config.batch_size, config.sequences - done);
    at::Tensor tokens = at::empty({rows, context}, at::kLong);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = static_cast<std::int64_t>(
          rng.below(static_cast<std::uint64_t>(stream.size() - context + 1)));
      stream.read(begin, {tokens.data_ptr<std::int64_t>() + row * context,
                          static_cast<std::size_t>(context)});
    }
    model.hidden(tokens, [&](const model::AttentionTrace& trace) {
      sums[static_cast<std::size_t>(trace.layer)].add(trace);
    });
    done += rows;
    progress.update(done, "");
  }
  progress.finish();

  Json result = {{"attention", model.config().attention},
                 {"sequences", config.sequences},
                 {"context", context},
                 {"split", config.split},
                 {"seed", config.seed},
                 {"layers", Json::array()}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    result["layers"].push_back(
        sums[static_cast<std::size_t>(layer)].means(layer, model.config().layer_strength(layer)));
  }
  return result;
}

}  // namespace xsa::diagnose
