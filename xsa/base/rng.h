// Random numbers for data order and tests: the same bits on every machine and standard library
// (std's distributions are not), with a state that a checkpoint can hold. Weights are drawn with
// ATen's generator.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xsa {

/// xoshiro256** (Blackman, Vigna), seeded by splitmix64.
class Rng {
 public:
  explicit Rng(std::uint64_t seed);
  std::uint64_t next();
  /// Uniform in [0, bound), without bias. bound >= 1.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Standard normal (Box-Muller; one value a call, nothing kept).
  double normal();
  /// 0 .. count-1 in random order (Fisher-Yates).
  std::vector<std::int64_t> permutation(std::int64_t count);

  /// 64 hexadecimal digits; from_state throws Error for anything else.
  std::string state() const;
  static Rng from_state(std::string_view state);

 private:
  std::array<std::uint64_t, 4> words_{};
};

}  // namespace xsa
