// The door of the LayerNorm's CPU kernels: how a call becomes tasks for workers.
#include "xsa/kernels/layer_norm.h"

#include <algorithm>

#include "xsa/kernels/cpu/call.h"
#include "xsa/kernels/cpu/dispatch.h"
#include "xsa/kernels/cpu/workspace.h"

namespace xsa::kernels {
namespace {

/// Rows of a task. Gradients of weight and bias are summed within a task first, so this number is
/// part of the result.
constexpr std::int64_t kRows = 64;

cpu::AddLayerNormCall make_call(const AddLayerNormParams& p) {
  cpu::AddLayerNormCall call;
  call.width = p.width, call.type = cpu::element_of(p.type), call.eps = p.eps;
  call.weight = p.weight, call.bias = p.bias;
  call.x = p.x, call.residual = p.residual, call.dy = p.dy, call.dsum = p.dsum;
  call.sum = p.sum, call.y = p.y, call.dx = p.dx;
  call.mean = p.mean, call.rstd = p.rstd;
  return call;
}

/// The pieces' sums, added up in their order.
void add_up(const float* pieces, std::int64_t count, std::int64_t stride, std::int64_t width,
            float* total) {
  std::fill_n(total, width, 0.0f);
  for (std::int64_t piece = 0; piece < count; ++piece)
    for (std::int64_t c = 0; c < width; ++c) total[c] += pieces[piece * stride + c];
}

}  // namespace

void add_layer_norm_forward(const AddLayerNormParams& p) {
  if (p.rows * p.width == 0) return;
  const cpu::Kernels& kernels = cpu::chosen_kernels();
  const cpu::AddLayerNormCall call = make_call(p);
  const Parallel parallel = p.parallel ? *p.parallel : serial();
  parallel.run((p.rows + kRows - 1) / kRows, [&](std::int64_t task, std::int64_t) {
    kernels.add_layer_norm(call, task * kRows, std::min(p.rows, (task + 1) * kRows));
  });
}

void add_layer_norm_backward(const AddLayerNormParams& p) {
  const cpu::Kernels& kernels = cpu::chosen_kernels();
  const cpu::AddLayerNormCall call = make_call(p);
  const Parallel parallel = p.parallel ? *p.parallel : serial();
  const std::int64_t tasks = (p.rows + kRows - 1) / kRows, stride = 2 * p.width;
  const cpu::Workspace pieces(tasks * stride);
  if (p.width > 0)
    parallel.run(tasks, [&](std::int64_t task, std::int64_t) {
      float* piece = pieces.data() + task * stride;
      kernels.add_layer_norm_gradients(call, task * kRows, std::min(p.rows, (task + 1) * kRows),
                                       piece, piece + p.width);
    });
  add_up(pieces.data(), tasks, stride, p.width, p.dweight);
  add_up(pieces.data() + p.width, tasks, stride, p.width, p.dbias);
}

}  // namespace xsa::kernels
