// The safetensors format (github.com/huggingface/safetensors): 8 bytes of header length, a JSON
// header, raw tensors. No Torch here, so that the parser can be fuzzed: every field of a hostile
// file is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "xsa/base/file.h"

namespace xsa::checkpoint {

/// A named tensor in memory; `bytes` is row-major, little-endian, and owned by somebody else.
struct TensorData {
  std::string name;
  std::string type;  // as safetensors names it: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Bytes of one element of a type; 0 for an unknown type.
std::int64_t element_size(const std::string& type);

/// Parses a whole file's bytes; the result's spans point into them. `name` is for error texts.
std::vector<TensorData> parse_safetensors(std::span<const std::byte> file, const std::string& name,
                                          std::map<std::string, std::string>* metadata = nullptr);

/// An mmap-ed file and its tensors.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::vector<TensorData>& tensors() const { return tensors_; }
  /// Throws Error naming file, tensor and the nearest match if it is not there.
  const TensorData& at(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::string name_;
  std::map<std::string, std::string> metadata_;
  std::vector<TensorData> tensors_;
};

/// Writes and syncs the file (not aside: the checkpoint's folder is renamed as a whole). Returns
/// its SHA-256.
std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const TensorData> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace xsa::checkpoint
