// The door of the CPU kernels: what they take, and how a call becomes tasks for workers.
#include "xsa/kernels/attention.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "xsa/base/error.h"
#include "xsa/kernels/cpu/call.h"
#include "xsa/kernels/cpu/decode_plan.h"
#include "xsa/kernels/cpu/dispatch.h"

namespace xsa::kernels {
namespace {

using cpu::Call;
using cpu::Kernels;

/// Uninitialised floats on a cache line's boundary.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : memory_(std::make_unique_for_overwrite<float[]>(count + kLine)) {}
  float* data() const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    return memory_.get() + (kLine - address / sizeof(float) % kLine) % kLine;
  }

 private:
  static constexpr std::int64_t kLine = 16;
  std::unique_ptr<float[]> memory_;
};

cpu::Strided strided(const void* data, const std::array<std::int64_t, 4>& stride) {
  return {static_cast<char*>(const_cast<void*>(data)), stride[0], stride[1], stride[2], stride[3]};
}
template <class AnyView>
cpu::Strided strided(const AnyView& view) {
  return strided(view.data, view.stride);
}

cpu::Element element_of(Type type) {
  return type == Type::kFloat32    ? cpu::Element::kFloat32
         : type == Type::kBFloat16 ? cpu::Element::kBFloat16
                                   : cpu::Element::kFloat16;
}

Call make_call(const AttentionParams& p, const Kernels& kernels) {
  Call call;
  call.sizes = {p.batch,    p.query_heads, p.key_heads,  p.queries,  p.keys,
                p.head_dim, p.value_dim,   p.own_offset, p.is_causal};
  call.plan = make_plan(call.sizes, kernels.tile);
  call.mask = {p.keys,      p.own_offset, p.window,    p.num_sink_keys, p.documents,
               p.is_causal, p.cu_seqlens, p.key_start, p.key_end};
  call.type = element_of(p.type);
  call.scale = p.scale, call.strength = p.strength, call.eps = p.eps;
  call.sink_logits = p.sink_logits;
  call.learned_strength = p.learned_strength;
  call.learned_batch = p.learned_strength_stride[0];
  call.learned_head = p.learned_strength_stride[1];
  call.learned_row = p.learned_strength_stride[2];
  call.q = strided(p.q), call.k = strided(p.k), call.v = strided(p.v);
  call.z = strided(p.z), call.dz = strided(p.dz);
  call.dq = strided(p.dq), call.dk = strided(p.dk), call.dv = strided(p.dv);
  call.lse = p.lse, call.c = p.c;
  call.dlse = p.dlse;
  call.dlearned_strength = p.dlearned_strength, call.dsink_logits = p.dsink_logits;
  return call;
}

/// Whether a task may add up in the gradient itself: its rows hold whole vectors of fp32.
bool sums_in_place(const Call& call, const cpu::Strided& gradient, std::int64_t size,
                   std::int64_t lanes) {
  return call.plan.parts == 1 && call.type == cpu::Element::kFloat32 && gradient.element == 1 &&
         size % lanes == 0;
}

}  // namespace

std::string unsupported(const AttentionParams& p) {
  const auto not_yet = [](const char* what) {
    return cat(what, " not supported by the CPU kernel yet");
  };
  if (p.type == Type::kFloat64) return not_yet("double precision is");
  if (p.head_dim < 1 || p.head_dim > 256 || p.value_dim < 1 || p.value_dim > 256)
    return "the CPU kernel takes head dimensions from 1 to 256";
  if (p.window) return not_yet("window is");
  if (p.num_sink_keys) return not_yet("num_sink_keys is");
  if (p.sink_logits) return not_yet("sink_logits is");
  if (p.cu_seqlens) return not_yet("cu_seqlens is");
  if (p.key_start || p.key_end) return not_yet("key_start and key_end are");
  return "";
}

void forward(const AttentionParams& params) {
  const Kernels& kernels = cpu::chosen_kernels();
  const Call call = make_call(params, kernels);
  const Parallel parallel = params.parallel ? *params.parallel : serial();
  if (params.queries <= cpu::kDecodeQueries) return cpu::decode(kernels, call, parallel);
  if (call.plan.forward_tasks == 0) return;
  const std::int64_t space = kernels.forward_floats(call);
  const Floats memory(space * parallel.workers);
  parallel.run(call.plan.forward_tasks, [&](std::int64_t task, std::int64_t worker) {
    kernels.forward(call, task, memory.data() + worker * space);
  });
}

void backward(const AttentionParams& params) {
  const Kernels& kernels = cpu::chosen_kernels();
  Call call = make_call(params, kernels);
  const cpu::Sizes& sizes = call.sizes;
  const Parallel parallel = params.parallel ? *params.parallel : serial();
  const std::int64_t heads = sizes.batch * sizes.key_heads;
  if (heads == 0) return;

  const std::int64_t lanes = kernels.tile.lanes, parts = call.plan.parts;
  const auto row_floats = [&](std::int64_t size) { return (size + lanes - 1) / lanes * lanes; };
  // One slot a task where parts are added up later, else one a worker.
  const std::int64_t slots = parts > 1 ? call.plan.backward_tasks : parallel.workers;
  const bool dk_in_place = sums_in_place(call, call.dk, sizes.head_dim, lanes);
  const bool dv_in_place = sums_in_place(call, call.dv, sizes.value_dim, lanes);
  const Floats dk_sums(dk_in_place ? 0 : slots * sizes.keys * row_floats(sizes.head_dim));
  const Floats dv_sums(dv_in_place ? 0 : slots * sizes.keys * row_floats(sizes.value_dim));
  if (!dk_in_place) call.dk_sums = dk_sums.data();
  if (!dv_in_place) call.dv_sums = dv_sums.data();

  const std::int64_t space = kernels.backward_floats(call);
  const Floats memory(space * parallel.workers);
  parallel.run(call.plan.backward_tasks, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t slot = parts > 1 ? task : worker;
    kernels.backward(call, task, slot, memory.data() + worker * space);
    if (parts == 1) kernels.write_sums(call, task, slot, 1, 0, sizes.keys);
  });
  if (parts == 1) return;
  constexpr std::int64_t kRows = 64;
  const std::int64_t chunks = (sizes.keys + kRows - 1) / kRows;
  parallel.run(heads * chunks, [&](std::int64_t task, std::int64_t) {
    const std::int64_t head = task / chunks, begin = task % chunks * kRows;
    kernels.write_sums(call, head, head * parts, parts, begin, std::min(sizes.keys, begin + kRows));
  });
}

}  // namespace xsa::kernels
