// SHA-256, as sha256sum prints it (OpenSSL's implementation).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace xsa {

/// Hashes what is added, in order.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  /// 64 lower-case hexadecimal digits. The object must not be used after.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::span<const std::byte> bytes);

}  // namespace xsa
