// ATen's global CPU generator. Nothing draws from it yet; it is seeded and saved so that whatever
// will (dropout) is repeatable.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace xsa::train {

void seed_generator(std::uint64_t seed);
at::Tensor generator_state();
void set_generator_state(const at::Tensor& state);

}  // namespace xsa::train
