// AdamW (Loshchilov and Hutter, arXiv 1711.05101) by ATen's fused CPU kernel, and the norm that
// clipping and the checks for NaN need.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "xsa/checkpoint/safetensors.h"
#include "xsa/model/gpt.h"
#include "xsa/train/config.h"

namespace xsa::train {

/// The L2 norm of all elements of contiguous fp32 CPU tensors as one vector, summed in double by
/// one thread (a pass over memory: small beside any step). Finite exactly if every element is.
double l2_norm(const std::vector<at::Tensor>& tensors);

class AdamW {
 public:
  /// Reads beta1, beta2, adam_eps and weight_decay. Only parameters marked `decay` are decayed.
  AdamW(const std::vector<model::NamedTensor>& parameters, const TrainConfig& config);

  /// One step with the parameters' gradients:
  ///   w -= lr weight_decay w,  m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
  ///   w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
  void update(double lr);

  /// "exp_avg.NAME", "exp_avg_sq.NAME" and "step": views of this object's memory.
  std::vector<checkpoint::TensorData> state() const;
  /// Throws Error for a state of other parameters.
  void restore(const checkpoint::SafetensorsFile& file);

 private:
  /// Parameters that share a weight decay; the fused kernel takes one for all.
  struct Group {
    double weight_decay;
    std::vector<std::string> names;
    std::vector<at::Tensor> parameters, exp_avg, exp_avg_sq, steps;
  };

  double beta1_, beta2_, eps_;
  at::Tensor step_;  // scalar fp32, shared by all parameters
  Group decayed_, plain_;
};

}  // namespace xsa::train
