// The door of the rotary positions' CPU kernel: how a call becomes tasks for workers.
#include "xsa/kernels/rope.h"

#include <algorithm>

#include "xsa/kernels/cpu/call.h"
#include "xsa/kernels/cpu/dispatch.h"
#include "xsa/kernels/cpu/workspace.h"

namespace xsa::kernels {
namespace {

/// A task moves about so much: enough to make handing it out cheap, little enough to be even.
constexpr std::int64_t kTaskBytes = 128 * 1024;

}  // namespace

void rotary_embedding(const RotaryParams& p) {
  const std::int64_t tokens = p.batch * p.tokens, row = p.heads * p.head_dim;
  if (tokens * row == 0) return;
  const cpu::Kernels& kernels = cpu::chosen_kernels();
  cpu::RotaryCall call;
  call.heads = p.heads, call.tokens = p.tokens, call.head_dim = p.head_dim;
  call.type = cpu::element_of(p.type);
  call.inverse = p.inverse;
  call.cos = p.cos, call.sin = p.sin;
  call.x = cpu::strided(p.x), call.y = cpu::strided(p.y);

  const Parallel parallel = p.parallel ? *p.parallel : serial();
  const std::int64_t token_bytes = 2 * row * (p.type == Type::kFloat32 ? 4 : 2);
  const std::int64_t step = std::max<std::int64_t>(1, kTaskBytes / token_bytes);
  parallel.run((tokens + step - 1) / step, [&](std::int64_t task, std::int64_t) {
    kernels.rotary(call, task * step, std::min(tokens, (task + 1) * step));
  });
}

}  // namespace xsa::kernels
