// Python's random.Random(seed) for small seeds, bit for bit: the harness resamples with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace xsa::tasks {

/// The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), seeded by init_by_array with the
/// seed as the only word, as CPython seeds it with an int below 2^32.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);
  /// random.random(): 53 bits, in [0, 1).
  double random() {
    if (next_ == kWords) refill();
    const std::uint32_t high = words_[next_] >> 5, low = words_[next_ + 1] >> 6;
    next_ += 2;
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
  }

 private:
  static constexpr std::size_t kWords = 624;
  void refill();

  std::array<std::uint32_t, kWords> state_, words_;  // words_: the state, tempered
  std::size_t next_ = kWords;
};

}  // namespace xsa::tasks
