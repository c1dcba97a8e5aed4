// The door of the linear layer's CPU kernel: how a call becomes tasks for workers.
#include "xsa/kernels/linear.h"

#include <algorithm>

#include "xsa/kernels/cpu/call.h"
#include "xsa/kernels/cpu/dispatch.h"
#include "xsa/kernels/cpu/workspace.h"

namespace xsa::kernels {
namespace {

/// Multiplications of a task: below it, another thread's help costs more than it brings; and its
/// weights stay in the second cache.
constexpr std::int64_t kTask = std::int64_t{1} << 16;

}  // namespace

void linear(const LinearParams& p) {
  if (p.rows * p.outputs == 0) return;
  const cpu::Kernels& kernels = cpu::chosen_kernels();
  const cpu::LinearCall call{p.rows, p.inputs, p.outputs, cpu::element_of(p.type),
                             p.x,    p.weight, p.bias,    p.y};
  // A whole number of tiles, whatever their size.
  const std::int64_t wanted =
      std::max<std::int64_t>(1, kTask / std::max<std::int64_t>(1, p.inputs));
  const std::int64_t outputs = (wanted + 7) / 8 * 8, tasks = (p.outputs + outputs - 1) / outputs;
  const auto run = [&](std::int64_t task, std::int64_t) {
    kernels.linear(call, task * outputs, std::min(p.outputs, (task + 1) * outputs));
  };
  if (p.parallel && tasks > 1) return p.parallel->run(tasks, run);
  for (std::int64_t task = 0; task < tasks; ++task) run(task, 0);
}

}  // namespace xsa::kernels
