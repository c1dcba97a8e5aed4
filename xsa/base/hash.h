// SHA-256, as sha256sum prints it (OpenSSL's implementation).
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>

namespace xsa {

/// Hashes what is added, in order.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256&) = delete;
  void add(std::span<const std::byte> bytes);
  /// 64 lower-case hexadecimal digits. The object must not be used after.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::span<const std::byte> bytes);

/// The hash of a file, on a thread of its own; in bounded memory. Destroyed early, it stops.
class FileHash {
 public:
  explicit FileHash(std::filesystem::path path);
  /// Whether hex() would not wait.
  bool done() const { return done_; }
  /// Waits for it. Throws Error if the file cannot be read, Interrupted when asked to stop.
  std::string hex();

 private:
  std::string hex_;
  std::exception_ptr error_;
  std::atomic<bool> done_ = false;
  std::jthread thread_;
};

}  // namespace xsa
