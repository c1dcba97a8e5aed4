#include "xsa/train/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "xsa/train/tensor_data.h"

namespace xsa::train {
namespace {

constexpr std::int64_t kLanes = 8;  // independent sums, so that the compiler vectorises them

double square_sum(const float* values, std::int64_t count) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double l2_norm(const std::vector<at::Tensor>& tensors) {
  double sum = 0;
  for (const at::Tensor& tensor : tensors)
    sum += square_sum(tensor.const_data_ptr<float>(), tensor.numel());
  return std::sqrt(sum);
}

AdamW::AdamW(const std::vector<model::NamedTensor>& parameters, const TrainConfig& config)
    : beta1_(config.beta1),
      beta2_(config.beta2),
      eps_(config.adam_eps),
      step_(at::zeros({}, at::kFloat)) {
  decayed_.weight_decay = config.weight_decay;
  plain_.weight_decay = 0;
  for (const auto& [name, tensor, decay] : parameters) {
    Group& group = decay ? decayed_ : plain_;
    group.names.push_back(name);
    group.parameters.push_back(tensor);
    group.exp_avg.push_back(at::zeros_like(tensor));
    group.exp_avg_sq.push_back(at::zeros_like(tensor));
    group.steps.push_back(step_);
  }
}

void AdamW::update(double lr) {
  const at::NoGradGuard no_grad;
  step_ += 1;
  for (Group* group : {&decayed_, &plain_}) {
    if (group->parameters.empty()) continue;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : group->parameters) gradients.push_back(parameter.grad());
    at::_fused_adamw_(group->parameters, gradients, group->exp_avg, group->exp_avg_sq, {},
                      group->steps, lr, beta1_, beta2_, group->weight_decay, eps_,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
}

std::vector<checkpoint::TensorData> AdamW::state() const {
  std::vector<checkpoint::TensorData> tensors = {view_of("step", step_)};
  for (const Group* group : {&decayed_, &plain_}) {
    for (std::size_t i = 0; i < group->names.size(); ++i) {
      tensors.push_back(view_of("exp_avg." + group->names[i], group->exp_avg[i]));
      tensors.push_back(view_of("exp_avg_sq." + group->names[i], group->exp_avg_sq[i]));
    }
  }
  return tensors;
}

void AdamW::restore(const checkpoint::SafetensorsFile& file) {
  copy_to(file.at("step"), step_);
  for (Group* group : {&decayed_, &plain_}) {
    for (std::size_t i = 0; i < group->names.size(); ++i) {
      copy_to(file.at("exp_avg." + group->names[i]), group->exp_avg[i]);
      copy_to(file.at("exp_avg_sq." + group->names[i]), group->exp_avg_sq[i]);
    }
  }
}

}  // namespace xsa::train
