#include "xsa/base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stop_token>
#include <utility>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/signals.h"

namespace xsa {
namespace {

std::string hash_file(const std::filesystem::path& path, const std::stop_token& stop) {
  const auto fail = [&] {
    throw Error(cat(path.string(), ": cannot read: ", std::strerror(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), [](std::FILE* open) { return std::fclose(open); });
  if (!file) fail();
  Sha256 hash;
  std::vector<std::byte> buffer(1 << 18);
  for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0;) {
    if (const int signal = stop_signal()) throw Interrupted(signal, "stopped while hashing");
    if (stop.stop_requested()) return "";
    hash.add(std::span(buffer).first(count));
  }
  if (std::ferror(file.get())) fail();
  return hash.hex();
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr);
}

Sha256::~Sha256() = default;

Sha256::Sha256(const Sha256& other) : state_(std::make_unique<State>()) {
  EVP_MD_CTX_copy_ex(state_->context, other.state_->context);
}

void Sha256::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

FileHash::FileHash(std::filesystem::path path)
    : thread_([this, file = std::move(path)](const std::stop_token& stop) {
        try {
          hex_ = hash_file(file, stop);
        } catch (...) {
          error_ = std::current_exception();
        }
        done_ = true;
      }) {}

std::string FileHash::hex() {
  if (thread_.joinable()) thread_.join();
  if (error_) std::rethrow_exception(error_);
  return hex_;
}

}  // namespace xsa
