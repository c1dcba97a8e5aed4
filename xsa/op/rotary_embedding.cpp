#include "xsa/op/rotary_embedding.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include "xsa/kernels/rope.h"
#include "xsa/op/autocast.h"
#include "xsa/op/backend.h"
#include "xsa/op/derivative.h"
#include "xsa/op/expect.h"
#include "xsa/op/kernel_call.h"
#include "xsa/op/registration.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using c10::SymInt;
using torch::autograd::variable_list;

Tensor call(const Tensor& x, const Tensor& cos, const Tensor& sin, SymInt offset, bool inverse) {
  using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, SymInt, bool);
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("xsa::rotary_embedding", "")
                                 .typed<Signature>();
  return handle.call(x, cos, sin, std::move(offset), inverse);
}

const Expect expect{"xsa::rotary_embedding"};

/// Also right for symbolic shapes.
void check(const Tensor& x, const Tensor& cos, const Tensor& sin, const SymInt& offset) {
  check_dense(expect, "x", x);
  expect(x.dim() == 4, "x: expected 4 dimensions [B, H, T, D], got ", describe(x),
         "; unsqueeze missing batch or head dimensions");
  const at::ScalarType type = x.scalar_type();
  expect(type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
         "x: expected float32, float64, bfloat16 or float16, got ", describe(x));
  const SymInt tokens = x.sym_size(2), dim = x.sym_size(3);
  expect((dim % 2).sym_eq(0), "x: expected an even head dimension D, since pairs are turned, got ",
         describe(x));
  expect(offset.sym_ge(0), "offset: expected at least 0, got ", offset);
  for (const auto& [name, table] :
       {std::pair<const char*, const Tensor&>{"cos", cos}, {"sin", sin}}) {
    expect(table.dim() == 2 && table.scalar_type() == at::kFloat && table.device() == x.device(),
           name, ": expected float32 [positions, D / 2] on the device of x, got ", describe(table));
    expect(table.sym_size(1).sym_eq(dim / 2), name, ": expected D / 2 = ", dim / 2,
           " columns, one for each pair, got ", describe(table));
    expect((table.sym_size(0) - tokens).sym_ge(offset), name, ": expected offset + T = ", offset,
           " + ", tokens, " rows or more, got ", describe(table), "; make longer tables");
  }
}

void run_kernel(const Tensor& given, const Tensor& cos, const Tensor& sin, const SymInt& offset,
                bool inverse, const Tensor& y) {
  const Tensor x = given.stride(3) == 1 ? given : given.contiguous();
  const std::int64_t tokens = x.size(2);
  const Tensor cosines = cos.narrow(0, known(offset), tokens).contiguous();
  const Tensor sines = sin.narrow(0, known(offset), tokens).contiguous();
  const Parallel parallel = aten_threads();
  kernels::RotaryParams params;
  params.batch = x.size(0), params.heads = x.size(1), params.tokens = tokens;
  params.head_dim = x.size(3);
  params.type = kernel_type(x.scalar_type());
  params.x = kernel_view(x), params.y = kernel_mutable_view(y);
  params.cos = cosines.const_data_ptr<float>(), params.sin = sines.const_data_ptr<float>();
  params.inverse = inverse;
  params.parallel = &parallel;
  kernels::rotary_embedding(params);
}

void run_eager(const Tensor& x, const Tensor& cos, const Tensor& sin, const SymInt& offset,
               bool inverse, const Tensor& y) {
  const Tensor wide = x.to(accumulate_type(x));
  const Tensor c = cos.narrow_symint(0, offset, x.sym_size(2)).to(wide.scalar_type());
  const Tensor table = sin.narrow_symint(0, offset, x.sym_size(2)).to(wide.scalar_type());
  const Tensor s = inverse ? table.neg() : table;
  const auto halves = wide.chunk(2, 3);
  if (x.sym_numel() == 0) return;
  y.copy_(at::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, 3));
}

Tensor meta(const Tensor& x, const Tensor& cos, const Tensor& sin, SymInt offset, bool) {
  check(x, cos, sin, offset);
  return new_laid_out_like(x, x.sym_size(3));
}

Tensor composite(const Tensor& x, const Tensor& cos, const Tensor& sin, SymInt offset,
                 bool inverse) {
  check(x, cos, sin, offset);
  const Tensor y = new_laid_out_like(x, x.sym_size(3));
  run_eager(x, cos, sin, offset, inverse, y);
  return y;
}

Tensor cpu(const Tensor& x, const Tensor& cos, const Tensor& sin, SymInt offset, bool inverse) {
  if (!takes_kernel(expect.op, x)) return composite(x, cos, sin, offset, inverse);
  check(x, cos, sin, offset);
  const Tensor y = new_laid_out_like(x, x.size(3));
  run_kernel(x, cos, sin, offset, inverse, y);
  return y;
}

/// x is turned in its own type, with float32 inside, as autocast leaves all that is elementwise; a
/// table that was made in the region is float32 again.
template <at::DeviceType device>
Tensor autocast(const Tensor& x, const Tensor& cos, const Tensor& sin, SymInt offset,
                bool inverse) {
  const Autocast region(device);
  return call(x, region.cast(cos, at::kFloat), region.cast(sin, at::kFloat), std::move(offset),
              inverse);
}

/// dx is dy turned back: the operator is its own derivative, at any order.
struct RotaryRule {
  static constexpr const char* kName = "XsaRotaryEmbeddingBackward";
  static constexpr std::size_t kKept = 2, kOutputs = 0;
  struct Options {
    SymInt offset;
    bool inverse = false;
  };

  template <class SomeOptions, class Visitor>
  static void visit(SomeOptions& o, const Visitor& visitor) {
    visitor(o.offset), visitor(o.inverse);
  }

  static variable_list gradients(const variable_list& incoming,
                                 const std::array<Tensor, kKept>& kept, const Options& options) {
    if (!incoming[0].defined()) return variable_list(1);
    const auto& [cos, sin] = kept;
    return {call(incoming[0], cos, sin, options.offset, !options.inverse)};
  }
};

Tensor autograd(const Tensor& x, const Tensor& cos, const Tensor& sin, SymInt offset,
                bool inverse) {
  refuse_forward_mode(expect.op, {x, cos, sin});
  TORCH_CHECK_NOT_IMPLEMENTED(!torch::autograd::compute_requires_grad(cos, sin),
                              "xsa::rotary_embedding: cos and sin have no gradient; detach them, "
                              "or write the rotation in plain PyTorch operators");
  const auto node = node_of<RotaryRule>(x);
  const Tensor y = below_autograd([&] { return call(x, cos, sin, offset, inverse); });
  if (!node) return y;
  torch::autograd::set_history(y, node);
  node->save({cos, sin}, {std::move(offset), inverse});
  return y;
}

}  // namespace

Tensor rotary_embedding(const Tensor& x, const Tensor& cos, const Tensor& sin,
                        const RotaryOptions& options) {
  return call(x, cos, sin, options.offset, options.inverse);
}

void rotary_embedding_into(const Tensor& x, const Tensor& cos, const Tensor& sin,
                           const RotaryOptions& options, const Tensor& out) {
  RECORD_FUNCTION("xsa::rotary_embedding", c10::ArrayRef<const c10::IValue>{});
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check(x, cos, sin, options.offset);
  expect(out.sizes() == x.sizes() && out.scalar_type() == x.scalar_type() &&
             out.device() == x.device(),
         "out: expected sizes, type and device of x, ", describe(x), ", got ", describe(out));
  const auto run = takes_kernel(expect.op, x) && out.stride(3) == 1 ? run_kernel : run_eager;
  run(x, cos, sin, options.offset, options.inverse, out);
}

void register_rotary_embedding(torch::Library& library) {
  using c10::DispatchKey;
  library.def(
      "rotary_embedding(Tensor x, Tensor cos, Tensor sin, *, SymInt offset=0, bool inverse=False) "
      "-> Tensor",
      {at::Tag::pt2_compliant_tag});
  const auto impl = [&](DispatchKey key, auto* function) {
    library.impl("rotary_embedding", torch::dispatch(key, function));
  };
  impl(DispatchKey::CompositeExplicitAutograd, &composite);
  impl(DispatchKey::CPU, &cpu);
  impl(DispatchKey::Meta, &meta);
  impl(DispatchKey::Autograd, &autograd);
  impl(DispatchKey::AutocastCPU, &autocast<at::kCPU>);
  impl(DispatchKey::AutocastCUDA, &autocast<at::kCUDA>);
}

}  // namespace xsa::op
