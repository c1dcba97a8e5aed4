#include "xsa/base/rng.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "xsa/base/error.h"

namespace xsa {
namespace {

constexpr std::size_t kDigitsPerWord = 16;

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : words_) word = splitmix64(seed);
}

std::uint64_t Rng::next() {
  const std::uint64_t result = std::rotl(words_[1] * 5, 7) * 9;
  const std::uint64_t shifted = words_[1] << 17;
  words_[2] ^= words_[0];
  words_[3] ^= words_[1];
  words_[1] ^= words_[2];
  words_[0] ^= words_[3];
  words_[2] ^= shifted;
  words_[3] = std::rotl(words_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  check(bound >= 1, "Rng::below: expected a bound of at least 1, got 0");
  // 2^64 mod bound: without that many of the lowest values, the rest divides evenly.
  const std::uint64_t rejected = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t value = next();
    if (value >= rejected) return value % bound;
  }
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));  // 1 - u in (0, 1]
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::vector<std::int64_t> Rng::permutation(std::int64_t count) {
  check(count >= 0, "Rng::permutation: expected a count of at least 0, got ", count);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[static_cast<std::size_t>(below(left))]);
  return order;
}

std::string Rng::state() const {
  std::string text;
  for (const std::uint64_t word : words_)
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15];
  return text;
}

Rng Rng::from_state(std::string_view state) {
  Rng rng(0);
  check(state.size() == rng.words_.size() * kDigitsPerWord, "random state: expected ",
        rng.words_.size() * kDigitsPerWord, " hexadecimal digits, got ", state.size(),
        " characters");
  rng.words_.fill(0);
  for (std::size_t i = 0; i < state.size(); ++i) {
    const int digit = hex_digit(state[i]);
    check(digit >= 0, "random state: expected lower-case hexadecimal digits, got '", state[i],
          "' at position ", i);
    std::uint64_t& word = rng.words_[i / kDigitsPerWord];
    word = word << 4 | static_cast<std::uint64_t>(digit);
  }
  check(rng.words_ != decltype(rng.words_){},
        "random state: all zeros, which xoshiro256** never leaves");
  return rng;
}

}  // namespace xsa
