#include "xsa/model/linear_cross_entropy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "xsa/base/error.h"

namespace xsa::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kIgnored = -1;

at::ScalarType softmax_type(const at::Tensor& hidden) {
  return hidden.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// The sum of a piece's losses, a double. Where `differentiate`, logits [n, V] become their
/// gradient.
at::Tensor softmax_loss(at::Tensor logits, const at::Tensor& targets, bool some_ignored,
                        bool differentiate) {
  at::_log_softmax_out(logits, logits, 1, /*half_to_float=*/false);
  const at::Tensor target = targets.clamp_min(0).unsqueeze(1);   // [n, 1]
  const at::Tensor ignored = targets.eq(kIgnored).unsqueeze(1);  // [n, 1]
  at::Tensor log_p = logits.gather(1, target);                   // [n, 1]
  if (some_ignored) log_p.masked_fill_(ignored, 0);
  if (differentiate) {
    logits.exp_().scatter_(1, target, log_p.expm1());
    if (some_ignored) logits.masked_fill_(ignored, 0);
  }
  return log_p.sum(at::kDouble).neg_();
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  // Autograd is off inside: the caller says which gradients are wanted.
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& targets, std::int64_t chunk,
                            bool wants_dhidden, bool wants_dweight) {
    const std::int64_t rows = hidden.size(0);
    const auto type = hidden.scalar_type(), wide = softmax_type(hidden);
    const bool some_ignored = targets.eq(kIgnored).any().item<bool>();
    const at::Tensor buffer =
        at::empty({std::min(chunk, rows), weight.size(0)}, hidden.options().dtype(wide));
    at::Tensor dhidden, dweight;
    if (wants_dhidden) dhidden = at::empty_like(hidden, at::MemoryFormat::Contiguous);
    if (wants_dweight) dweight = at::zeros(weight.sizes(), weight.options().dtype(wide));

    at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kDouble));
    for (std::int64_t begin = 0; begin < rows; begin += chunk) {
      const std::int64_t count = std::min(chunk, rows - begin);
      const at::Tensor h = hidden.narrow(0, begin, count);
      at::Tensor logits = buffer.narrow(0, 0, count);
      if (type == wide) {
        at::mm_out(logits, h, weight.t());
      } else {
        logits.copy_(at::mm(h, weight.t()));
      }
      loss += softmax_loss(logits, targets.narrow(0, begin, count), some_ignored,
                           wants_dhidden || wants_dweight);
      if (wants_dhidden) {
        at::Tensor target = dhidden.narrow(0, begin, count);
        at::mm_out(target, logits.to(type), weight);
      }
      if (wants_dweight) dweight.addmm_(logits.t(), h.to(wide));
    }
    if (wants_dhidden) ctx->saved_data["dhidden"] = dhidden;
    if (wants_dweight) ctx->saved_data["dweight"] = dweight.to(type);
    ctx->saved_data["spent"] = false;
    return loss.to(wide);
  }

  // The gradients are scaled where they lie and handed on, so that they never exist twice.
  static tensor_list backward(AutogradContext* ctx, const tensor_list& gradients) {
    check(!at::GradMode::is_enabled(),
          "linear_cross_entropy: expected no derivative of its gradient (create_graph), which is "
          "not implemented; use at::cross_entropy on Gpt::logits for that");
    check(!ctx->saved_data["spent"].toBool(),
          "linear_cross_entropy: expected one backward a forward, got a second; run the forward "
          "again, since its gradients were handed on");
    ctx->saved_data["spent"] = true;
    tensor_list result(6);
    for (const auto& [name, slot] : {std::pair{"dhidden", 0}, std::pair{"dweight", 1}}) {
      const auto saved = ctx->saved_data.find(name);
      if (saved == ctx->saved_data.end()) continue;
      result[slot] = saved->second.toTensor();
      ctx->saved_data.erase(saved);
      result[slot].mul_(gradients[0]);
    }
    return result;
  }
};

void check_inputs(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                  std::int64_t chunk) {
  constexpr const char* kWho = "linear_cross_entropy: ";
  check_usage(hidden.dim() == 2 && weight.dim() == 2 && hidden.size(1) == weight.size(1), kWho,
              "expected hidden [N, C] and weight [V, C], got ", hidden.sizes(), " and ",
              weight.sizes());
  check_usage(hidden.scalar_type() == weight.scalar_type(), kWho,
              "expected hidden and weight of one type, got ", hidden.scalar_type(), " and ",
              weight.scalar_type());
  check_usage(
      targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong,
      kWho, "expected targets [", hidden.size(0), "] of type Long, got ", targets.sizes(),
      " of type ", targets.scalar_type());
  check_usage(chunk >= 1, kWho, "expected a chunk of at least 1 row, got ", chunk);
  if (targets.numel() == 0) return;
  const auto [smallest, largest] = at::aminmax(targets);
  check_usage(
      smallest.item<std::int64_t>() >= kIgnored && largest.item<std::int64_t>() < weight.size(0),
      kWho, "expected targets in [0, ", weight.size(0), "), or -1 to ignore one, got [",
      smallest.item<std::int64_t>(), ", ", largest.item<std::int64_t>(), "]");
}

}  // namespace

at::Tensor linear_cross_entropy_sum(const at::Tensor& hidden, const at::Tensor& weight,
                                    const at::Tensor& targets, std::int64_t chunk) {
  check_inputs(hidden, weight, targets, chunk);
  const bool differentiate = at::GradMode::is_enabled();
  return LinearCrossEntropy::apply(hidden, weight, targets, chunk,
                                   differentiate && hidden.requires_grad(),
                                   differentiate && weight.requires_grad());
}

}  // namespace xsa::model
