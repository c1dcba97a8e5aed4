// The door of the exclusion's CPU kernels: how a call becomes tasks for workers.
#include "xsa/kernels/exclude.h"

#include <algorithm>
#include <cstdint>

#include "xsa/kernels/cpu/call.h"
#include "xsa/kernels/cpu/dispatch.h"
#include "xsa/kernels/cpu/workspace.h"

namespace xsa::kernels {
namespace {

using cpu::ExcludeCall;
using cpu::strided;

/// A task moves about so much: enough to make handing it out cheap, little enough to be even.
constexpr std::int64_t kTaskBytes = 128 * 1024;

ExcludeCall make_call(const ExcludeParams& p, const std::array<std::int64_t, 4>& layout) {
  ExcludeCall call;
  call.query_heads = p.query_heads, call.key_heads = p.key_heads;
  call.queries = p.queries, call.keys = p.keys, call.value_dim = p.value_dim;
  call.own_offset = p.own_offset;
  call.heads_in_tokens = layout[1] < layout[2];
  call.type = cpu::element_of(p.type);
  call.strength = p.strength, call.eps = p.eps;
  call.learned_strength = p.learned_strength;
  call.learned_batch = p.learned_strength_stride[0];
  call.learned_head = p.learned_strength_stride[1];
  call.learned_row = p.learned_strength_stride[2];
  call.y = strided(p.y), call.v = strided(p.v), call.z = strided(p.z);
  call.dz = strided(p.dz), call.dy = strided(p.dy), call.dv = strided(p.dv);
  call.c = p.c, call.dlearned_strength = p.dlearned_strength;
  return call;
}

/// kernel(begin, end, workspace) for all units, `rows` rows of Dv elements each.
template <class Kernel>
void run_units(const ExcludeParams& p, std::int64_t units, std::int64_t rows, std::int64_t floats,
               const Kernel& kernel) {
  if (units == 0) return;
  const Parallel parallel = p.parallel ? *p.parallel : serial();
  const std::int64_t unit_bytes = rows * p.value_dim * (p.type == Type::kFloat32 ? 4 : 2);
  const std::int64_t step = std::max<std::int64_t>(1, kTaskBytes / unit_bytes);
  const cpu::Workspace memory(floats * parallel.workers);
  parallel.run((units + step - 1) / step, [&](std::int64_t task, std::int64_t worker) {
    kernel(task * step, std::min(units, (task + 1) * step), memory.data() + worker * floats);
  });
}

}  // namespace

void exclude_forward(const ExcludeParams& p) {
  const cpu::ExcludeKernels& kernels = cpu::chosen_kernels().exclude;
  const ExcludeCall call = make_call(p, p.z.stride);
  const std::int64_t group = p.key_heads ? p.query_heads / p.key_heads : 0;
  run_units(p, p.batch * p.key_heads * p.queries, 1 + 2 * group, kernels.floats(call),
            [&](std::int64_t begin, std::int64_t end, float* workspace) {
              kernels.forward(call, begin, end, workspace);
            });
}

void exclude_backward(const ExcludeParams& p) {
  const cpu::ExcludeKernels& kernels = cpu::chosen_kernels().exclude;
  const ExcludeCall call = make_call(p, p.dy.stride);
  const std::int64_t group = p.key_heads ? p.query_heads / p.key_heads : 0;
  run_units(p, p.batch * p.key_heads * p.keys, 2 + 3 * group, kernels.floats(call),
            [&](std::int64_t begin, std::int64_t end, float* workspace) {
              kernels.backward(call, begin, end, workspace);
            });
}

}  // namespace xsa::kernels
