#include "xsa/train/generator.h"

#include <ATen/Context.h>

#include <mutex>

namespace xsa::train {
namespace {

template <class Action>
auto with_generator(const Action& action) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard lock(generator.mutex());
  return action(generator);
}

}  // namespace

void seed_generator(std::uint64_t seed) {
  with_generator([&](at::Generator& generator) { generator.set_current_seed(seed); });
}

at::Tensor generator_state() {
  return with_generator([](at::Generator& generator) { return generator.get_state(); });
}

void set_generator_state(const at::Tensor& state) {
  with_generator([&](at::Generator& generator) { generator.set_state(state); });
}

}  // namespace xsa::train
