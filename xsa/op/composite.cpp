// Every option of the schema in eager ATen, for any device and type: the path of whatever no fused
// kernel takes. Holds [B, H, T, S] matrices, so its memory grows with T x S.
//
// Shapes inside, G = H / K query heads to a key/value head: q [B, K, G, T, D], k [B, K, 1, S, D],
// rows [B, K, G, T, 1]. All in the accumulate type. Letters and formulas: docs/operator.md.
//
// An invisible key may hold NaN or infinity, and 0 * NaN is NaN. So what is not finite is replaced
// by zero before each product over keys, and the rows that do see such a value are set to NaN.
#include <ATen/ATen.h>

#include <limits>

#include "xsa/op/checks.h"
#include "xsa/op/signature.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor finite(const Tensor& tensor) {
  return at::where(tensor.isfinite(), tensor, at::zeros({}, tensor.options()));
}

/// The call in the accumulate type, grouped, with its mask.
struct Call {
  std::int64_t batch, key_heads, group, queries, keys, head_dim, value_dim, own_offset;
  double scale, eps;
  Tensor q;        // [B, K, G, T, D]
  Tensor k, v;     // [B, K, S, D or Dv]
  Tensor visible;  // [1 or B, 1, 1, T, S], true where a query sees a key; undefined: all do
  Tensor w;        // [B, K, 1, T, Dv]; 0 where a query does not see its own key
  // w may be so large that w . w overflows, or so small that it vanishes: it is divided by sigma, a
  // power of two near it, first.
  Tensor sigma;     // [B, K, 1, T, 1]
  Tensor w_scaled;  // w / sigma
  Tensor norm;      // max(w . w, eps^2) / sigma^2, [B, K, 1, T, 1]
  Tensor strength;  // [B, K, G, T, 1], or 0-dimensional

  Tensor grouped(const Tensor& heads, std::int64_t last) const {  // [B, H, T, last]
    return heads.reshape({batch, key_heads, group, queries, last});
  }
  Tensor rows(const Tensor& per_row) const { return grouped(per_row.unsqueeze(-1), 1); }
  /// matrix [B, K, G, T, n] times per-key-head [B, K, n, m].
  Tensor times(const Tensor& matrix, const Tensor& right) const {
    return matrix.reshape({batch, key_heads, group * queries, matrix.size(-1)})
        .matmul(right)
        .view({batch, key_heads, group, queries, right.size(-1)});
  }
  /// Sum over the group and its queries: left [B, K, G, T, n], right [B, K, G, T, m] -> [B, K, n,
  /// m].
  Tensor transposed_times(const Tensor& left, const Tensor& right) const {
    const auto flat = [&](const Tensor& x) {
      return x.reshape({batch, key_heads, group * queries, x.size(-1)});
    };
    return flat(left).transpose(-2, -1).matmul(flat(right));
  }
};

/// [1 or B, T, S]; undefined where every query sees every key.
Tensor visible_keys(const Call& call, const AttentionOptions& o, const Tensor& q) {
  const auto index = q.options().dtype(at::kLong);
  const Tensor key = at::arange(call.keys, index);                                         // [S]
  const Tensor own = at::arange(call.queries, index).add_(call.own_offset).unsqueeze(-1);  // [T, 1]
  const Tensor start =
      has(o.key_start) ? o.key_start->to(at::kLong).view({-1, 1, 1}) : at::zeros({}, index);
  Tensor visible;
  const auto restrict_to = [&](const Tensor& allowed) {
    visible = visible.defined() ? visible.logical_and(allowed) : allowed;
  };
  if (o.window) restrict_to((key - own).abs() < known(*o.window));
  if (has(o.cu_seqlens)) {
    const Tensor ends = o.cu_seqlens->slice(0, 1).to(at::kLong);
    const Tensor document = at::searchsorted(ends, at::arange(call.queries, index), false, true);
    Tensor key_document = at::full({call.keys}, -1, index);
    key_document.narrow(0, call.own_offset, call.queries).copy_(document);
    restrict_to(document.unsqueeze(-1) == key_document);
  }
  if (visible.defined() && known(o.num_sink_keys) > 0)
    visible = visible.logical_or(key - start < known(o.num_sink_keys));
  if (o.is_causal) restrict_to(key <= own);
  if (has(o.key_start)) restrict_to(key >= start);
  if (has(o.key_end)) restrict_to(key < o.key_end->to(at::kLong).view({-1, 1, 1}));
  if (!visible.defined()) return visible;
  if (visible.dim() == 2) visible = visible.unsqueeze(0);
  return visible.expand({visible.size(0), call.queries, call.keys});
}

/// Whether a query sees its own key, [B, T, 1]; only a key range can hide it.
Tensor own_key_visible(const Call& call, const AttentionOptions& o, const Tensor& q) {
  Tensor own = at::arange(call.queries, q.options().dtype(at::kLong)).add_(call.own_offset);
  own = own.unsqueeze(0).expand({call.batch, call.queries});
  Tensor visible = at::ones_like(own, own.options().dtype(at::kBool));
  if (has(o.key_start)) visible = visible.logical_and(own >= o.key_start->unsqueeze(-1));
  if (has(o.key_end)) visible = visible.logical_and(own < o.key_end->unsqueeze(-1));
  return visible.unsqueeze(-1);
}

void set_exclusion(Call& call, const AttentionOptions& o, const Tensor& q) {
  call.w = call.v.narrow(2, call.own_offset, call.queries).unsqueeze(2);
  if (has(o.key_start) || has(o.key_end))
    call.w = at::where(own_key_visible(call, o, q).view({call.batch, 1, 1, call.queries, 1}),
                       call.w, at::zeros({}, call.w.options()));
  call.sigma = own_scale(call.w, call.eps);
  call.w_scaled = call.w / call.sigma;
  call.norm =
      at::maximum((call.w_scaled * call.w_scaled).sum(-1, true), (call.eps / call.sigma).square());
  if (!has(o.learned_strength)) {
    call.strength = at::full({}, o.strength, call.w.options());
    return;
  }
  const Tensor a = o.learned_strength->to(call.w.scalar_type());
  const Tensor shaped = a.dim() == 1 ? a.view({1, -1, 1}) : a;
  call.strength = call.rows(shaped.expand({call.batch, call.key_heads * call.group, call.queries}));
}

Call prepare(const Inputs& in, const AttentionOptions& o) {
  Call call;
  call.batch = in.q.size(0), call.key_heads = in.k.size(1);
  call.group = in.q.size(1) / call.key_heads;
  call.queries = in.q.size(2), call.keys = in.k.size(2);
  call.head_dim = in.q.size(3), call.value_dim = in.v.size(3);
  call.own_offset = own_offset_of(in, o);
  call.scale = scale_of(in, o);
  call.eps = o.eps;
  const at::ScalarType type = accumulate_type(in.q);
  call.q = call.grouped(in.q.to(type), call.head_dim);
  call.k = in.k.to(type);
  call.v = in.v.to(type);
  call.visible = visible_keys(call, o, in.q);
  if (call.visible.defined()) call.visible = call.visible.unsqueeze(1).unsqueeze(1);
  set_exclusion(call, o, in.q);
  return call;
}

bool has_exclusion(const AttentionOptions& o) { return has(o.learned_strength) || o.strength != 0; }

/// s [B, K, G, T, S], -inf where invisible.
Tensor scores(const Call& call) {
  Tensor s = call.times(call.q * call.scale, call.k.transpose(-2, -1));
  if (call.visible.defined()) s.masked_fill_(call.visible.logical_not(), -kInfinity);
  return s;
}

/// Weights of the forward, and lse. They are divided by their sum, not made of lse: what rounding
/// lse costs is a factor that a row's weights have in common in the backward, where it does no
/// harm, but not in y.
struct Softmax {
  Tensor p, lse;  // [B, K, G, T, S], in s's place; [B, K, G, T, 1]
};
Softmax softmax(const Call& call, Tensor s, const AttentionOptions& o) {
  Tensor top = at::full({}, -kInfinity, s.options()), sink;
  if (call.keys > 0) top = s.amax(-1, true);
  if (has(o.sink_logits)) {
    sink = o.sink_logits->to(s.scalar_type()).view({1, call.key_heads, call.group, 1, 1});
    top = at::maximum(top, sink);
  }
  top = top.masked_fill(top == -kInfinity, 0);
  s.sub_(top).exp_();
  Tensor sum = s.sum(-1, true);
  if (sink.defined()) sum = sum + (sink - top).exp();
  return {s.div_(sum.masked_fill(sum == 0, 1)), top + sum.log()};
}

/// exp(s - lse), in place; 0 in a row without a visible key, whose lse is -inf.
Tensor weights(Tensor s, const Tensor& lse) {
  return s.sub_(lse.masked_fill(lse == -kInfinity, 0)).exp_();
}

/// Rows that see a value which is not finite, [B, K, 1, T, 1].
Tensor tainted_rows(const Call& call) {
  const Tensor bad =
      call.v.isfinite().logical_not_().any(-1).to(call.v.scalar_type());            // [B, K, S]
  const Tensor seen = call.visible.squeeze(1).squeeze(1).to(call.v.scalar_type());  // [1|B, T, S]
  return (seen.matmul(bad.transpose(1, 2)) > 0)                                     // [B, T, K]
      .transpose(1, 2)
      .view({call.batch, call.key_heads, 1, call.queries, 1});
}

/// y [B, K, G, T, Dv].
Tensor weighted_values(const Call& call, const Tensor& p) {
  if (!call.visible.defined()) return call.times(p, call.v);
  return call.times(p, finite(call.v))
      .masked_fill_(tainted_rows(call), std::numeric_limits<double>::quiet_NaN());
}

Tensor written_like(const Tensor& like, const Tensor& value, std::int64_t last) {
  Tensor out = new_laid_out_like(like, last);
  out.copy_(value.view(out.sizes()));
  return out;
}

/// The gradient of the own key's value that does not come through y, [B, K, T, Dv].
/// dz, z [B, K, G, T, Dv]; c and ratio = (dz . w) sigma / n of the rows. No factor has both
/// (core/exclusion.h): their product may overflow where the result does not.
Tensor direct_value_gradient(const Call& call, const Tensor& dz, const Tensor& z, const Tensor& c,
                             const Tensor& ratio) {
  const Tensor& a = call.strength;
  // Below eps the norm is a constant: its own derivative, the 2, goes.
  const Tensor is_small =
      (call.w_scaled * call.w_scaled).sum(-1, true) < (call.eps / call.sigma).square();
  const Tensor two = at::full({}, 2, a.options());
  const Tensor mirrored = z - c * (at::where(is_small, at::zeros_like(two), two) - a) * call.w;
  return (-a * (c * dz + ratio / call.sigma * mirrored)).sum(2);
}

}  // namespace

Outputs composite_forward(const Inputs& in, const AttentionOptions& options) {
  check_call(in, options);
  check_index_values(in, options);
  const Call call = prepare(in, options);
  const auto [p, lse] = softmax(call, scores(call), options);
  const Tensor y = weighted_values(call, p);
  const Tensor along = (y * call.w_scaled).sum(-1, true) / call.norm;  // c sigma
  const Tensor c = along / call.sigma;
  const Tensor z = has_exclusion(options) ? y - call.strength * along * call.w_scaled : y;
  const auto rows = in.q.sizes().slice(0, 3);
  return {written_like(in.q, z, call.value_dim), lse.reshape(rows), c.reshape(rows)};
}

Gradients composite_backward(const BackwardInputs& in, const AttentionOptions& options) {
  check_call(in, options);
  check_index_values(in.forward(), options);
  const Call call = prepare(in.forward(), options);
  const at::ScalarType type = accumulate_type(in.q);
  const bool masked = call.visible.defined();
  Tensor dz = call.grouped(in.dz.to(type), call.value_dim);
  if (masked)  // a row without a visible key is a constant
    dz = at::where(call.visible.any(-1, true), dz, at::zeros({}, dz.options()));
  const Tensor z = call.grouped(in.z.to(type), call.value_dim);
  const Tensor lse = call.rows(in.lse), c = call.rows(in.c);
  const Tensor dz_w = (dz * call.w_scaled).sum(-1, true);  // g / sigma
  const Tensor ratio = dz_w / call.norm;
  const Tensor dy = has_exclusion(options) ? dz - call.strength * ratio * call.w_scaled : dz;
  // y . dy is z . dz, but for the rounding of dy, which dy . v below has too. Where z was stored in
  // 16 bits, that rounding is the larger one, and z . dz has less of it.
  const bool from_z = !has_exclusion(options) || in.z.scalar_type() != type;
  Tensor delta =
      from_z ? (z * dz).sum(-1, true) : ((z + call.strength * c * call.w) * dy).sum(-1, true);
  if (has(in.dlse)) delta = delta - call.rows(*in.dlse);

  const Tensor p = weights(scores(call), lse);
  Tensor dv = call.transposed_times(p, dy);
  Tensor ds =
      call.times(dy, (masked ? finite(call.v) : call.v).transpose(-2, -1)).sub_(delta).mul_(p);
  if (masked) ds.masked_fill_(call.visible.logical_not(), 0);
  const Tensor dq = call.times(ds, masked ? finite(call.k) : call.k).mul_(call.scale);
  const Tensor dk = call.transposed_times(ds, masked ? finite(call.q) : call.q).mul_(call.scale);
  if (has_exclusion(options))
    dv.narrow(2, call.own_offset, call.queries).add_(direct_value_gradient(call, dz, z, c, ratio));

  Tensor dlearned_strength, dsink_logits;
  const auto rows = in.q.sizes().slice(0, 3);
  if (has(options.learned_strength))
    dlearned_strength =
        sum_to_option((c * dz_w * call.sigma).neg_().reshape(rows), *options.learned_strength);
  if (has(options.sink_logits)) {
    const Tensor logits = options.sink_logits->to(type).view({1, call.key_heads, call.group, 1, 1});
    const Tensor mass = weights(logits.expand_as(lse).clone(), lse);
    dsink_logits = sum_to_option((mass * delta).neg_().reshape(rows), *options.sink_logits);
  }
  return {written_like(in.q, dq, call.head_dim), written_like(in.k, dk, call.head_dim),
          written_like(in.v, dv, call.value_dim), dlearned_strength, dsink_logits};
}

}  // namespace xsa::op
