// libFuzzer: any bytes parse as safetensors, or throw Error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "xsa/base/error.h"
#include "xsa/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    std::int64_t sum = 0;
    for (const auto& tensor :
         xsa::checkpoint::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz"))
      for (const std::byte value : tensor.bytes) sum += std::to_integer<int>(value);
    return sum < 0 ? -1 : 0;  // read every byte that a tensor claims
  } catch (const xsa::Error&) {
    return 0;
  }
}
