#include "tests/op/cases.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <algorithm>
#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/tolerance.h"
#include "xsa/base/error.h"
#include "xsa/base/rng.h"
#include "xsa/op/backend.h"
#include "xsa/op/kernel_call.h"
#include "xsa/op/tensors.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;

constexpr auto kDouble = at::kDouble;

Tensor normal(Rng& rng, at::IntArrayRef sizes) {
  const Tensor tensor = at::empty(sizes, kDouble);
  double* data = tensor.mutable_data_ptr<double>();
  for (std::int64_t n = 0; n < tensor.numel(); ++n) data[n] = static_cast<float>(rng.normal());
  return tensor;
}

Tensor integers(const std::vector<std::int64_t>& numbers, at::ScalarType type) {
  return at::tensor(numbers, at::kLong).to(type);
}

/// A packing of `queries` into three documents, one of them empty.
Tensor packing(Rng& rng, std::int64_t queries) {
  std::int64_t a = rng.below(queries + 1), b = rng.below(queries + 1);
  if (a > b) std::swap(a, b);
  return integers({0, a, a, b, queries}, at::kInt);
}

/// Ranges of keys; the last sequence sees none, if there are several.
void add_key_range(Rng& rng, const Sizes& n, AttentionOptions& options) {
  std::vector<std::int64_t> start, end;
  for (std::int64_t b = 0; b < n.batch; ++b) {
    start.push_back(rng.below(n.keys / 2 + 1));
    end.push_back(b == 2 ? start.back() : start.back() + rng.below(n.keys - start.back() + 1));
  }
  options.key_start = integers(start, at::kLong);
  options.key_end = integers(end, at::kInt);
}

std::vector<std::int64_t> numbers(const OptionalTensor& tensor) {
  std::vector<std::int64_t> out;
  if (has(tensor))
    for (const double x : values(*tensor)) out.push_back(static_cast<std::int64_t>(x));
  return out;
}

/// The schema's words, one condition after the other.
struct MaskRule {
  explicit MaskRule(const Case& c)
      : o(c.options), offset(own_offset_of({c.q, c.k, c.v}, o)), queries(c.q.size(2)) {}

  /// Whether query i of sequence b sees key j.
  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t own = offset + i, first = start.empty() ? 0 : start[b];
    if (j < first) return false;
    if (!end.empty() && j >= end[b]) return false;
    if (o.is_causal && j > own) return false;
    if (j < first + o.num_sink_keys) return true;
    if (o.window && std::abs(j - own) >= *o.window) return false;
    if (boundaries.empty()) return true;
    if (j < offset || j >= offset + queries) return false;
    for (const std::int64_t boundary : boundaries)
      if ((i < boundary) != (j - offset < boundary)) return false;
    return true;
  }

  const AttentionOptions& o;
  std::int64_t offset, queries;
  std::vector<std::int64_t> start = numbers(o.key_start), end = numbers(o.key_end),
                            boundaries = numbers(o.cu_seqlens);
};

/// [B, 1, T, S] booleans.
Tensor dense_mask(const Case& c) {
  const MaskRule rule(c);
  const std::int64_t batch = c.q.size(0), queries = c.q.size(2), keys = c.k.size(2);
  const Tensor mask = at::zeros({batch, 1, queries, keys}, at::kBool);
  bool* data = mask.mutable_data_ptr<bool>();
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i < queries; ++i)
      for (std::int64_t j = 0; j < keys; ++j) *data++ = rule.sees(b, i, j);
  return mask;
}

/// Leaves for every input that has a gradient.
struct Leaves {
  explicit Leaves(const Case& c) : call(c) {
    for (Tensor* tensor : {&call.q, &call.k, &call.v}) add(*tensor);
    if (call.options.learned_strength) add(*call.options.learned_strength);
    if (call.options.sink_logits) add(*call.options.sink_logits);
  }
  void add(Tensor& tensor) {
    tensor = tensor.detach().requires_grad_();
    all.push_back(tensor);
  }
  /// Outputs of `call` and its gradients.
  Result finish(const Tensor& z, const Tensor& lse, const Tensor& c) const {
    Result out{z.detach(), lse.detach(), c.detach(), {}, {}, {}, {}, {}};
    auto gradients = torch::autograd::grad({z, lse}, all, {call.dz, call.dlse.to(lse.dtype())},
                                           std::nullopt, false, true);
    for (std::size_t n = 0; n < all.size(); ++n)
      if (!gradients[n].defined()) gradients[n] = at::zeros_like(all[n]);
    out.dq = gradients[0], out.dk = gradients[1], out.dv = gradients[2];
    std::size_t next = 3;
    if (call.options.learned_strength) out.dlearned_strength = gradients[next++];
    if (call.options.sink_logits) out.dsink_logits = gradients[next];
    return out;
  }

  Case call;
  std::vector<Tensor> all;
};

Tensor from(const std::vector<double>& numbers, at::IntArrayRef sizes) {
  return at::tensor(numbers, kDouble).view(sizes);
}

}  // namespace

Case Case::cast(at::ScalarType type) const {
  Case out = *this;
  for (Tensor* tensor : {&out.q, &out.k, &out.v, &out.dz}) *tensor = tensor->to(type);
  out.dlse = dlse.to(type == kDouble ? kDouble : at::kFloat);
  return out;
}

Case make_case(const Sizes& n, std::uint64_t seed, const AttentionOptions& options) {
  Rng rng(seed);
  Case c;
  c.q = normal(rng, {n.batch, n.query_heads, n.queries, n.head_dim});
  c.k = normal(rng, {n.batch, n.key_heads, n.keys, n.head_dim});
  c.v = normal(rng, {n.batch, n.key_heads, n.keys, n.value_dim});
  c.dz = normal(rng, {n.batch, n.query_heads, n.queries, n.value_dim});
  c.dlse = normal(rng, {n.batch, n.query_heads, n.queries});
  c.options = options;
  c.name = cat("make_case seed ", seed);
  return c;
}

std::vector<Case> single_option_cases() {
  std::vector<Case> cases;
  const auto add = [&](const char* name, const Sizes& sizes, const AttentionOptions& options) {
    cases.push_back(make_case(sizes, 100 + cases.size(), options));
    cases.back().name = name;
  };
  Rng rng(7);
  const Sizes n;
  Sizes one;
  one.batch = 1;
  Sizes three = n;
  three.batch = 3;
  add("none", n, {});
  add("is_causal", n, {.is_causal = true});
  add("scale", n, {.scale = 0.3});
  add("negative scale", n, {.scale = -1.5});
  add("strength 0", n, {.strength = 0});
  add("strength 0.4", n, {.strength = 0.4});
  add("strength -2", n, {.strength = -2});
  add("learned scalar", n, {.learned_strength = normal(rng, {})});
  add("learned [H]", n, {.learned_strength = normal(rng, {4})});
  add("learned [B, H, T]", n, {.learned_strength = normal(rng, {2, 4, 6})});
  add("sink_logits", n, {.sink_logits = normal(rng, {4})});
  add("sink keys alone", n, {.num_sink_keys = 2});
  add("window", n, {.window = 2});
  add("window, causal, sink keys", n, {.is_causal = true, .num_sink_keys = 2, .window = 2});
  add("cu_seqlens", one, {.cu_seqlens = packing(rng, 6)});
  add("cu_seqlens, sink keys", one, {.num_sink_keys = 3, .cu_seqlens = packing(rng, 6)});
  AttentionOptions range;
  add_key_range(rng, three, range);
  add("key range", three, range);
  range.sink_logits = normal(rng, {4}), range.num_sink_keys = 1, range.window = 1;
  add("key range, sinks, window", three, range);
  add("own_offset", n, {.is_causal = true, .own_offset = 1});
  add("eps decides", n, {.eps = 2.0});
  return cases;
}

Case random_case(std::uint64_t seed) {
  Rng rng(seed);
  const auto maybe = [&](double chance) { return rng.uniform() < chance; };
  Sizes n;
  n.key_heads = 1 + rng.below(3);
  n.query_heads = n.key_heads * (1 + rng.below(3));
  n.queries = 1 + rng.below(8);
  n.keys = n.queries + rng.below(6);
  n.head_dim = 1 + rng.below(9);
  n.value_dim = 1 + rng.below(9);
  const bool packed = maybe(0.3);
  n.batch = packed ? 1 : 1 + rng.below(3);
  AttentionOptions o;
  o.is_causal = maybe(0.5);
  if (maybe(0.2)) o.scale = rng.normal();
  if (maybe(0.4)) o.strength = maybe(0.5) ? 0 : rng.normal();
  if (maybe(0.4)) {
    const std::uint64_t form = rng.below(3);
    o.learned_strength = form == 0   ? normal(rng, {})
                         : form == 1 ? normal(rng, {n.query_heads})
                                     : normal(rng, {n.batch, n.query_heads, n.queries});
  }
  if (maybe(0.3)) o.sink_logits = normal(rng, {n.query_heads});
  if (maybe(0.4)) o.num_sink_keys = rng.below(4);
  if (maybe(0.4)) o.window = 1 + rng.below(n.keys);
  if (packed) o.cu_seqlens = packing(rng, n.queries);
  if (maybe(0.3)) add_key_range(rng, n, o);
  if (maybe(0.4)) o.own_offset = rng.below(n.keys - n.queries + 1);
  if (maybe(0.1)) o.eps = 1;
  Case c = make_case(n, rng.next(), o);
  c.name = cat("random_case(", seed, ")");
  return c;
}

Result run_operator(const Case& c) {
  const Leaves leaves(c);
  const Case& in = leaves.call;
  const AttentionResult out = attention(in.q, in.k, in.v, in.options);
  return leaves.finish(out.z, out.lse, out.c);
}

Result run_eager(const Case& c) {
  const Leaves leaves(c);
  const Case& in = leaves.call;
  const AttentionOptions& o = in.options;
  const std::int64_t heads = in.q.size(1), queries = in.q.size(2), group = heads / in.k.size(1);
  const Tensor k = in.k.repeat_interleave(group, 1), v = in.v.repeat_interleave(group, 1);
  const Tensor mask = dense_mask(c), blind = mask.any(-1).logical_not();
  const double scale = scale_of({in.q, in.k, in.v}, o);
  Tensor s = at::where(mask, in.q.matmul(k.transpose(-2, -1)) * scale,
                       at::scalar_tensor(-INFINITY, in.q.options()));
  if (!o.sink_logits)  // a row of -inf alone has no softmax
    s = at::where(blind.unsqueeze(-1), at::zeros_like(s), s);
  if (o.sink_logits)
    s = at::cat(
        {s,
         o.sink_logits->to(s.dtype()).view({1, -1, 1, 1}).expand({s.size(0), heads, queries, 1})},
        -1);
  const Tensor p = at::where(mask, s.softmax(-1).narrow(-1, 0, mask.size(-1)), at::zeros({}));
  Tensor lse = s.to(accumulate_type(in.q)).logsumexp(-1);
  if (!o.sink_logits) lse = at::where(blind, at::scalar_tensor(-INFINITY, lse.options()), lse);
  const Tensor y = p.to(v.dtype()).matmul(v);

  const std::int64_t offset = own_offset_of({in.q, in.k, in.v}, o);
  const Tensor own = v.narrow(2, offset, queries);
  const Tensor sees_own = mask.diagonal(offset, -2, -1).unsqueeze(-1);  // [B, 1, T, 1]
  const Tensor w = at::where(sees_own, own, at::zeros_like(own));
  // The paper's two lines: normalize, subtract the projection.
  const Tensor length = at::linalg_vector_norm(w, 2, at::IntArrayRef{-1}, true).clamp_min(o.eps);
  const Tensor unit = w / length, along = (y * unit).sum(-1, true);
  Tensor a = at::scalar_tensor(o.strength, y.options());
  if (o.learned_strength) a = o.learned_strength->to(y.dtype());
  if (a.dim() == 1) a = a.view({1, -1, 1});
  if (a.dim() == 3) a = a.unsqueeze(-1);
  return leaves.finish(y - a * along * unit, lse, (along / length).squeeze(-1));
}

Result run_sdpa(const Case& c) {
  const Leaves leaves(c);
  const Case& in = leaves.call;
  const AttentionOptions& o = in.options;
  const std::int64_t group = in.q.size(1) / in.k.size(1), queries = in.q.size(2);
  const Tensor y =
      at::scaled_dot_product_attention(in.q, in.k, in.v, {}, 0, o.is_causal, o.scale, group > 1);
  const Tensor own = in.v.narrow(2, in.v.size(2) - queries, queries).repeat_interleave(group, 1);
  const Tensor length = at::linalg_vector_norm(own, 2, at::IntArrayRef{-1}, true).clamp_min(o.eps);
  const Tensor unit = own / length, along = (y * unit).sum(-1, true);
  const Tensor z = o.strength == 0 ? y : y - o.strength * along * unit;
  return leaves.finish(z, (z * 0).sum(-1), along.detach());
}

Result run_reference(const Case& c) {
  KernelCall call({c.q, c.k, c.v}, c.options);
  const Tensor dlse = c.dlse.to(at::kFloat).contiguous();
  call.params.dz = kernel_view(c.dz);
  call.params.dlse = dlse.const_data_ptr<float>();
  const kernels::ReferenceForward forward = kernels::reference_forward(call.params);
  const kernels::ReferenceBackward backward = kernels::reference_backward(call.params);
  const at::IntArrayRef rows = c.q.sizes().slice(0, 3);
  Result out{from(forward.z, c.dz.sizes()),
             from(forward.lse, rows),
             from(forward.c, rows),
             from(backward.dq, c.q.sizes()),
             from(backward.dk, c.k.sizes()),
             from(backward.dv, c.v.sizes()),
             {},
             {}};
  if (c.options.learned_strength)
    out.dlearned_strength =
        sum_to_option(from(backward.dlearned_strength, rows), *c.options.learned_strength);
  if (c.options.sink_logits) out.dsink_logits = from(backward.dsink_logits, {c.q.size(1)});
  return out;
}

BackendScope::BackendScope(const std::string& name) { set_backend(name); }
BackendScope::~BackendScope() { set_backend("auto"); }

std::vector<double> values(const Tensor& tensor) {
  const Tensor flat = tensor.to(kDouble).contiguous();
  const double* data = flat.const_data_ptr<double>();
  return {data, data + flat.numel()};
}

namespace {

struct Named {
  const char* name;
  Tensor Result::*tensor;
};
constexpr Named kAll[] = {{"z", &Result::z},
                          {"lse", &Result::lse},
                          {"c", &Result::c},
                          {"dq", &Result::dq},
                          {"dk", &Result::dk},
                          {"dv", &Result::dv},
                          {"dlearned_strength", &Result::dlearned_strength},
                          {"dsink_logits", &Result::dsink_logits}};

double largest_finite(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double x : numbers)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  return largest;
}

/// Of the sums that gradients are: dz (1 + |a|) is dy's, and |a c dz| the exclusion's.
double largest_term(const Case& c, const Result& exact) {
  double strength = std::abs(c.options.strength);
  if (c.options.learned_strength) strength = largest_finite(values(*c.options.learned_strength));
  return std::max(1.0, largest_finite(values(c.dz)) * (1 + strength) *
                           std::max(1.0, largest_finite(values(exact.c))));
}

double largest_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (std::size_t n = 0; n < actual.size(); ++n)
    if (std::isfinite(expected[n])) largest = std::max(largest, std::abs(actual[n] - expected[n]));
  return largest;
}

kernels::Type kernel_type(at::ScalarType type) {
  return type == at::kFloat      ? kernels::Type::kFloat32
         : type == at::kHalf     ? kernels::Type::kFloat16
         : type == at::kBFloat16 ? kernels::Type::kBFloat16
                                 : kernels::Type::kFloat64;
}

}  // namespace

void expect_same(const Result& actual, const Result& expected, double relative) {
  for (const auto& [name, tensor] : kAll) {
    ASSERT_EQ((actual.*tensor).defined(), (expected.*tensor).defined()) << name;
    if (!(expected.*tensor).defined()) continue;
    EXPECT_EQ((actual.*tensor).sizes(), (expected.*tensor).sizes()) << name;
    const auto want = values(expected.*tensor);
    EXPECT_TRUE(xsa::testing::is_near(values(actual.*tensor), want,
                                      relative * std::max(1.0, largest_finite(want))))
        << name;
  }
}

void expect_as_good_as_eager(const Case& c) {
  SCOPED_TRACE(cat(c.name, " ", c10::toString(c.q.scalar_type())));
  const Result actual = run_operator(c), eager = run_eager(c), exact = run_reference(c);
  for (const auto& [name, tensor] : kAll) {
    ASSERT_EQ((actual.*tensor).defined(), (exact.*tensor).defined()) << name;
    if (!(exact.*tensor).defined()) continue;
    const auto want = values(exact.*tensor);
    const double tolerance =
        xsa::testing::beside_eager(largest_error(values(eager.*tensor), want), largest_finite(want),
                                   largest_term(c, exact), kernel_type(c.q.scalar_type()));
    EXPECT_TRUE(xsa::testing::is_near(values(actual.*tensor), want, tolerance)) << name;
  }
}

}  // namespace xsa::op::testing
