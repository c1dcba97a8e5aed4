#include "xsa/tasks/python_random.h"

#include <algorithm>

namespace xsa::tasks {
namespace {

constexpr std::size_t kMiddle = 397;

std::uint32_t twist(std::uint32_t high, std::uint32_t low, std::uint32_t other) {
  const std::uint32_t word = (high & 0x80000000u) | (low & 0x7fffffffu);
  return other ^ (word >> 1) ^ (0x9908b0dfu & (0u - (word & 1u)));
}

std::uint32_t temper(std::uint32_t word) {
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

}  // namespace

PythonRandom::PythonRandom(std::uint32_t seed) {
  state_[0] = 19650218u;
  for (std::size_t i = 1; i < kWords; ++i) {
    const std::uint32_t before = state_[i - 1] ^ (state_[i - 1] >> 30);
    state_[i] = 1812433253u * before + static_cast<std::uint32_t>(i);
  }
  std::size_t i = 1;
  const auto mix = [&](std::uint32_t factor) {
    const std::uint32_t before = state_[i - 1] ^ (state_[i - 1] >> 30);
    return state_[i] ^ (before * factor);
  };
  const auto step = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (std::size_t k = 0; k < kWords; ++k, step()) state_[i] = mix(1664525u) + seed;
  for (std::size_t k = 1; k < kWords; ++k, step())
    state_[i] = mix(1566083941u) - static_cast<std::uint32_t>(i);
  state_[0] = 0x80000000u;
}

void PythonRandom::refill() {
  constexpr std::size_t kRest = kWords - kMiddle;
  for (std::size_t i = 0; i < kRest; ++i)
    state_[i] = twist(state_[i], state_[i + 1], state_[i + kMiddle]);
  for (std::size_t i = kRest; i < kWords - 1; ++i)
    state_[i] = twist(state_[i], state_[i + 1], state_[i - kRest]);
  state_[kWords - 1] = twist(state_[kWords - 1], state_[0], state_[kMiddle - 1]);
  std::transform(state_.begin(), state_.end(), words_.begin(), temper);
  next_ = 0;
}

}  // namespace xsa::tasks
