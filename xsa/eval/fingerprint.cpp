#include "xsa/eval/fingerprint.h"

#include <ATen/ATen.h>

#include <array>
#include <string_view>

#include "xsa/base/hash.h"

namespace xsa::eval {
namespace {

void add_text(Sha256& hash, std::string_view text) {
  const std::array<std::uint64_t, 1> size = {text.size()};
  hash.add(std::as_bytes(std::span(size)));
  hash.add(std::as_bytes(std::span(text)));
}

void add_ids(Sha256& hash, std::span<const text::Token> ids) {
  const std::array<std::uint64_t, 1> size = {ids.size()};
  hash.add(std::as_bytes(std::span(size)));
  hash.add(std::as_bytes(ids));
}

}  // namespace

std::string fingerprint(const model::Gpt& model) {
  Sha256 hash;
  add_text(hash, to_json(model.config()).dump());
  for (const model::NamedTensor& parameter : model.parameters()) {
    add_text(hash, parameter.name);
    const at::Tensor values = parameter.tensor.detach().contiguous();
    hash.add({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
  }
  return hash.hex();
}

std::string fingerprint(std::span<const Item> items) {
  Sha256 hash;
  for (const Item& item : items) {
    add_ids(hash, item.context);
    add_ids(hash, item.continuation);
  }
  return hash.hex();
}

}  // namespace xsa::eval
