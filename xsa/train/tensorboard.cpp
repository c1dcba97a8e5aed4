#include "xsa/train/tensorboard.h"

#include <array>
#include <bit>
#include <chrono>
#include <system_error>

#include "xsa/base/error.h"

namespace xsa::train {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}();

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

/// A checksum of data that hold checksums themselves: turned, and moved by a constant.
std::string masked_crc(std::string_view bytes) {
  return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8u);
}

// Protocol buffers: a field is its number and kind of encoding in one byte, then its value.

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(int field, int encoding) {
  return varint(static_cast<unsigned>(field * 8 + encoding));
}

std::string number_field(int field, std::int64_t value) {
  return key(field, 0) + varint(static_cast<std::uint64_t>(value));
}
std::string double_field(int field, double value) {
  return key(field, 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string bytes_field(int field, std::string_view value) {
  return key(field, 2).append(varint(value.size())).append(value);
}
std::string float_field(int field, float value) {
  return key(field, 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}

/// Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(std::int64_t step, const std::string& content) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return tf_record(double_field(1, now.count()) + number_field(2, step) + content);
}

std::int64_t usable_offset(const fs::path& path, std::int64_t offset) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return !error && size >= static_cast<std::uintmax_t>(offset) ? offset : 0;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return (length + masked_crc(length)).append(data).append(masked_crc(data));
}

std::vector<Scalar> scalars_of(const Json& line) {
  const std::string type = line.at("type");
  std::vector<Scalar> scalars;
  const auto add = [&](const std::string& prefix, const Json& figures, const std::string& suffix) {
    for (const auto& [name, value] : figures.items()) {
      if (value.is_number()) scalars.push_back({prefix + name + suffix, value.get<double>()});
    }
  };
  if (type == "eval") {
    add(cat(type, "/", line.at("name").get<std::string>(), "/"), line.at("metrics"), "");
  } else if (type == "diagnose") {
    for (Json layer : line.at("layers")) {
      const std::string suffix = cat("/layer_", layer.at("layer").dump());
      layer.erase("layer");
      add(type + "/", layer, suffix);
    }
  } else {
    Json figures = line;
    for (const char* const place : {"step", "tokens", "elapsed_s"}) figures.erase(place);
    add(type + "/", figures, "");
  }
  return scalars;
}

EventFile::EventFile(const fs::path& path, std::int64_t offset)
    : file_(path, offset = usable_offset(path, offset)) {
  if (offset == 0) file_.append(event(0, bytes_field(3, "brain.Event:2")));
}

void EventFile::append(const Json& line) {
  std::string summary;  // its value = 1: tag = 1, simple_value = 2
  for (const Scalar& scalar : scalars_of(line))
    summary += bytes_field(
        1, bytes_field(1, scalar.tag) + float_field(2, static_cast<float>(scalar.value)));
  if (!summary.empty())
    file_.append(event(line.at("step").get<std::int64_t>(), bytes_field(5, summary)));
}

}  // namespace xsa::train
