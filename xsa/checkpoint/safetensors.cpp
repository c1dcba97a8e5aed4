#include "xsa/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/json.h"
#include "xsa/base/suggest.h"
#include "xsa/checkpoint/hashed_file.h"

namespace xsa::checkpoint {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeader = 100'000'000;  // as the reference implementation
constexpr std::size_t kMaxRank = 64;             // as ATen
constexpr char kMetadataKey[] = "__metadata__";

/// In the order in which files hold their tensors: every tensor is aligned to its element's size.
constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
    {"I64", 8}, {"F64", 8}, {"F32", 4}, {"I32", 4}, {"BF16", 2},
    {"F16", 2}, {"I16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};

std::int64_t type_rank(std::string_view type) {
  return std::find_if(std::begin(kTypes), std::end(kTypes),
                      [&](const auto& known) { return known.first == type; }) -
         std::begin(kTypes);
}

std::string type_names() {
  std::string names;
  for (const auto& [name, size] : kTypes) names += cat(names.empty() ? "" : " ", name);
  return names;
}

/// A hostile file's text for an error: short.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  return cat("'", text.substr(0, kLongest), text.size() > kLongest ? "..." : "", "'");
}

/// Bytes of a tensor, or nothing where the count does not fit. A dimension of 0 counts as 1 until
/// the end, so that strides fit as well.
std::optional<std::int64_t> byte_count(const std::vector<std::int64_t>& shape,
                                       std::int64_t element_bytes) {
  std::int64_t count = element_bytes;
  bool empty = false;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count)) return std::nullopt;
  }
  return empty ? 0 : count;
}

/// What the header says of one tensor.
struct Entry {
  TensorData tensor;
  std::vector<std::uint64_t> offsets;
};

/// Reads the header's JSON event by event: no tree is built, so that depth, size and repeated keys
/// of a hostile header cost nothing. Everything but the format's own structure is refused.
class HeaderHandler : public Json::json_sax_t {
 public:
  explicit HeaderHandler(std::string name) : name_(std::move(name)) {}

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_integer(std::int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override {
    unexpected("a fraction or a number above 2^64");
  }
  bool binary(Json::binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::kShape) {
      std::vector<std::int64_t>& shape = entries.back().tensor.shape;
      if (value > std::numeric_limits<std::int64_t>::max()) fail("a dimension above 2^63");
      if (shape.size() == kMaxRank) fail(cat("more than ", kMaxRank, " dimensions"));
      shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsets) {
      if (entries.back().offsets.size() == 2) fail("more than 2 data_offsets");
      entries.back().offsets.push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata)
      metadata[key_] = value;
    else if (place_ == Place::kTensor && key_ == "dtype")
      entries.back().tensor.type = value;
    else
      unexpected("text");
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kHeader;
    } else if (place_ == Place::kHeader && key_ == kMetadataKey) {
      place_ = Place::kMetadata;
      inner_keys_.clear();
    } else if (place_ == Place::kHeader) {
      place_ = Place::kTensor;
      inner_keys_.clear();
      entries.emplace_back().tensor.name = key_;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    if (!(place_ == Place::kHeader ? keys_ : inner_keys_).insert(key).second)
      fail(cat("the key ", shown(key), " twice"));
    if (place_ == Place::kTensor && key != "dtype" && key != "shape" && key != "data_offsets")
      fail(cat("the unknown key ", shown(key)));
    key_ = key;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && inner_keys_.size() != 3)
      fail("an entry without dtype, shape or data_offsets");
    place_ = place_ == Place::kHeader ? Place::kStart : Place::kHeader;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && key_ == "shape")
      place_ = Place::kShape;
    else if (place_ == Place::kTensor && key_ == "data_offsets")
      place_ = Place::kOffsets;
    else
      unexpected("an array");
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && entries.back().offsets.size() != 2)
      fail("fewer than 2 data_offsets");
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    throw Error(
        cat(name_, ": the header is not valid JSON: mistake at byte ", kLengthBytes + position));
  }

 private:
  enum class Place { kStart, kHeader, kMetadata, kTensor, kShape, kOffsets };

  [[noreturn]] void fail(const std::string& what) const {
    const bool inside = place_ != Place::kStart && place_ != Place::kHeader;
    const std::string& about =
        inside && place_ != Place::kMetadata ? entries.back().tensor.name : kMetadataKey;
    throw Error(cat(name_, ": not a valid safetensors header: it has ", what,
                    inside ? cat(" in ", shown(about)) : ""));
  }
  [[noreturn]] void unexpected(const char* what) const {
    fail(cat(what, " where the format has none, at the key ", shown(key_)));
  }

  std::string name_, key_;
  Place place_ = Place::kStart;
  std::set<std::string> keys_, inner_keys_;
};

/// The header's text; `file` has been cut to the data behind it.
std::string_view take_header(std::span<const std::byte>& file, const std::string& name) {
  check(file.size() >= kLengthBytes, name, ": expected a safetensors file of at least ",
        kLengthBytes, " bytes, got ", file.size());
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  check(length <= kMaxHeader && length <= file.size() - kLengthBytes, name,
        ": expected a header of at most ", std::min(kMaxHeader, file.size() - kLengthBytes),
        " bytes, got a length of ", length, " (truncated, or not a safetensors file)");
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + kLengthBytes,
                                static_cast<std::size_t>(length));
  check(header.starts_with('{'), name, ": expected a header that begins with '{'");
  file = file.subspan(kLengthBytes + header.size());
  return header;
}

/// Gives an entry's tensor its bytes. `data_begin` is the data's position in the file.
void place_tensor(Entry& entry, std::span<const std::byte> data, std::size_t data_begin,
                  const std::string& name) {
  TensorData& tensor = entry.tensor;
  const auto fail = [&](const auto&... what) {
    throw Error(cat(name, ": tensor ", shown(tensor.name), ": ", what...));
  };
  const std::int64_t element = element_size(tensor.type);
  if (element == 0) fail("unknown type ", shown(tensor.type), "; expected one of ", type_names());
  const std::uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (begin > end || end > data.size())
    fail("expected data_offsets in order and within the file's ", data.size(),
         " bytes of data, got [", begin, ", ", end, "]");
  const std::optional<std::int64_t> bytes = byte_count(tensor.shape, element);
  if (!bytes) fail("its shape has more elements than a file can hold");
  if (static_cast<std::uint64_t>(*bytes) != end - begin)
    fail("expected ", *bytes, " bytes by its shape and type, got data_offsets of ", end - begin);
  if (const auto position = data_begin + begin;
      *bytes > 0 && position % static_cast<std::uint64_t>(element) != 0)
    fail("expected data at a multiple of ", element, " bytes, got byte ", position,
         "; write the file again with a safetensors library of today");
  tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(*bytes));
  if (tensor.type == "BOOL" && std::any_of(tensor.bytes.begin(), tensor.bytes.end(),
                                           [](std::byte value) { return value > std::byte{1}; }))
    fail("expected bytes of 0 or 1 in a BOOL tensor");
}

/// The tensors must cover the data without holes and overlaps.
void check_cover(const std::vector<Entry>& entries, std::size_t data_bytes,
                 const std::string& name) {
  std::vector<const Entry*> by_offset;
  for (const Entry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Entry* a, const Entry* b) { return a->offsets < b->offsets; });
  std::uint64_t covered = 0;
  for (const Entry* entry : by_offset) {
    check(entry->offsets[0] == covered, name, ": tensor ", shown(entry->tensor.name),
          ": expected data from byte ", covered, " (no holes, no overlaps), got data_offsets of [",
          entry->offsets[0], ", ", entry->offsets[1], "]");
    covered = entry->offsets[1];
  }
  check(covered == data_bytes, name, ": expected ", covered, " bytes of data, got ", data_bytes);
}

/// Pointers to the tensors, in the order of the file.
std::vector<const TensorData*> in_file_order(std::span<const TensorData> tensors,
                                             const std::string& file) {
  std::set<std::string_view> names;
  std::vector<const TensorData*> ordered;
  for (const TensorData& tensor : tensors) {
    const std::int64_t element = element_size(tensor.type);
    check(element != 0, file, ": tensor ", shown(tensor.name), ": unknown type ",
          shown(tensor.type), "; expected one of ", type_names());
    const bool negative = std::any_of(tensor.shape.begin(), tensor.shape.end(),
                                      [](std::int64_t size) { return size < 0; });
    const std::optional<std::int64_t> bytes =
        negative ? std::nullopt : byte_count(tensor.shape, element);
    check(bytes && static_cast<std::size_t>(*bytes) == tensor.bytes.size(), file, ": tensor ",
          shown(tensor.name), ": its shape and type do not make ", tensor.bytes.size(), " bytes");
    check(tensor.name != kMetadataKey && names.insert(tensor.name).second, file, ": the name ",
          shown(tensor.name), " is taken");
    ordered.push_back(&tensor);
  }
  std::sort(ordered.begin(), ordered.end(), [](const TensorData* a, const TensorData* b) {
    const std::int64_t rank_a = type_rank(a->type), rank_b = type_rank(b->type);
    return rank_a != rank_b ? rank_a < rank_b : a->name < b->name;
  });
  return ordered;
}

}  // namespace

std::int64_t element_size(const std::string& type) {
  const std::int64_t rank = type_rank(type);
  return rank == std::ssize(kTypes) ? 0 : kTypes[rank].second;
}

std::vector<TensorData> parse_safetensors(std::span<const std::byte> file, const std::string& name,
                                          std::map<std::string, std::string>* metadata) {
  std::span<const std::byte> data = file;
  const std::string_view header = take_header(data, name);
  HeaderHandler handler(name);
  Json::sax_parse(header, &handler);
  for (Entry& entry : handler.entries) place_tensor(entry, data, file.size() - data.size(), name);
  check_cover(handler.entries, data.size(), name);
  if (metadata != nullptr) *metadata = std::move(handler.metadata);
  std::vector<TensorData> tensors;
  for (Entry& entry : handler.entries) tensors.push_back(std::move(entry.tensor));
  return tensors;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(path),
      name_(path.string()),
      tensors_(parse_safetensors(file_.bytes(), name_, &metadata_)) {}

const TensorData& SafetensorsFile::at(const std::string& name) const {
  std::vector<std::string> names;
  for (const TensorData& tensor : tensors_) {
    if (tensor.name == name) return tensor;
    names.push_back(tensor.name);
  }
  throw Error(cat(name_, ": no tensor '", name, "'", did_you_mean(name, names)));
}

std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const TensorData> tensors,
                              const std::map<std::string, std::string>& metadata) {
  const std::vector<const TensorData*> ordered = in_file_order(tensors, path.string());
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::size_t offset = 0;
  for (const TensorData* tensor : ordered) {
    header[tensor->name] = {{"dtype", tensor->type},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, offset + tensor->bytes.size()}}};
    offset += tensor->bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw Error(cat(path.string(), ": expected names and metadata in UTF-8"));
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  check(text.size() <= kMaxHeader, path.string(), ": expected a header of at most ", kMaxHeader,
        " bytes, got ", text.size());
  const std::uint64_t length = text.size();
  HashedFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const TensorData* tensor : ordered) file.write(tensor->bytes);
  return file.finish().sha256;
}

}  // namespace xsa::checkpoint
