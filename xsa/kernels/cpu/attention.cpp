// The door of the CPU kernels: what they take, and how a call becomes tasks for workers.
#include "xsa/kernels/attention.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "xsa/kernels/cpu/call.h"
#include "xsa/kernels/cpu/decode_plan.h"
#include "xsa/kernels/cpu/dispatch.h"
#include "xsa/kernels/cpu/workspace.h"

namespace xsa::kernels {
namespace {

using cpu::Call;
using cpu::element_of;
using cpu::Kernels;
using cpu::strided;
using cpu::Workspace;

Call make_call(const AttentionParams& p, const Kernels& kernels) {
  Call call;
  call.sizes = {p.batch, p.query_heads, p.key_heads, p.queries, p.keys, p.head_dim, p.value_dim};
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
  call.dlearned_strength = p.dlearned_strength;
  return call;
}

/// Whether a task may add up in the gradient itself: its rows hold whole vectors of fp32.
bool sums_in_place(const Call& call, const cpu::Strided& gradient, std::int64_t size,
                   std::int64_t lanes) {
  return call.type == cpu::Element::kFloat32 && gradient.element == 1 && size % lanes == 0;
}

/// What a backward needs beside its workers' workspaces; `call` points into it.
class BackwardMemory {
 public:
  BackwardMemory(Call& call, const AttentionParams& params, std::int64_t lanes,
                 std::int64_t workers) {
    const cpu::Sizes& n = call.sizes;
    const std::int64_t heads = n.batch * n.query_heads, rows = heads * n.queries;
    const auto slots = [&](std::int64_t size) {
      return workers * call.plan.task_parts * call.plan.part_keys *
             ((size + lanes - 1) / lanes * lanes);
    };
    if (!sums_in_place(call, call.dk, n.head_dim, lanes))
      call.dk_sums = (dk_ = std::make_unique<Workspace>(slots(n.head_dim)))->data();
    if (!sums_in_place(call, call.dv, n.value_dim, lanes))
      call.dv_sums = (dv_ = std::make_unique<Workspace>(slots(n.value_dim)))->data();
    turns_.resize(heads * call.plan.query_blocks);
    call.turns = turns_.data();
    if (params.sink_logits) {
      dsink_rows_.resize(rows);
      call.dsink_rows = dsink_rows_.data();
    }
    call.dq_sums = call.dq;
    if (call.plan.head_tasks == 1 || call.type == cpu::Element::kFloat32) return;
    dq_ = std::make_unique<Workspace>(rows * n.head_dim);
    const std::int64_t head = n.queries * n.head_dim;
    call.dq_sums = strided(dq_->data(), {n.query_heads * head, head, n.head_dim, 1});
  }

  /// The sums over queries, [B, H].
  void sum_sinks(const Call& call, float* dsink_logits) const {
    const std::int64_t queries = call.sizes.queries;
    for (std::int64_t head = 0; head < call.sizes.batch * call.sizes.query_heads; ++head) {
      double sum = 0;
      for (std::int64_t t = 0; t < queries; ++t) sum += dsink_rows_[head * queries + t];
      dsink_logits[head] = static_cast<float>(sum);
    }
  }

 private:
  std::unique_ptr<Workspace> dk_, dv_, dq_;
  std::vector<std::int32_t> turns_;
  std::vector<float> dsink_rows_;
};

}  // namespace

std::string unsupported(const AttentionParams& p) {
  if (p.type == Type::kFloat64) return "double precision is for checking, and has no CPU kernel";
  if (p.head_dim < 1 || p.head_dim > 256 || p.value_dim < 1 || p.value_dim > 256)
    return "the CPU kernel takes head dimensions from 1 to 256";
  return "";
}

void forward(const AttentionParams& params) {
  const Kernels& kernels = cpu::chosen_kernels();
  const Call call = make_call(params, kernels);
  const Parallel parallel = params.parallel ? *params.parallel : serial();
  if (params.queries <= cpu::kDecodeQueries) return cpu::decode(kernels, call, parallel);
  if (call.plan.forward_tasks == 0) return;
  const std::int64_t space = kernels.forward_floats(call);
  const Workspace memory(space * parallel.workers);
  parallel.run(call.plan.forward_tasks, [&](std::int64_t task, std::int64_t worker) {
    kernels.forward(call, task, memory.data() + worker * space);
  });
}

void backward(const AttentionParams& params) {
  const Kernels& kernels = cpu::chosen_kernels();
  Call call = make_call(params, kernels);
  const Parallel parallel = params.parallel ? *params.parallel : serial();
  if (params.dlearned_strength)
    std::fill_n(params.dlearned_strength, params.batch * params.query_heads * params.queries, 0.0f);
  const BackwardMemory memory(call, params, kernels.tile.lanes, parallel.workers);
  const std::int64_t space = kernels.backward_floats(call);
  const Workspace workspaces(space * parallel.workers);
  parallel.run(call.plan.backward_tasks, [&](std::int64_t task, std::int64_t worker) {
    kernels.backward(call, task, worker, workspaces.data() + worker * space);
  });
  if (params.dsink_logits) memory.sum_sinks(call, params.dsink_logits);
}

}  // namespace xsa::kernels
