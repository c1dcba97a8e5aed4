// libFuzzer: any bytes come back from their ids, and a cut at a safe prefix changes no id.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "xsa/text/gpt2_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const xsa::text::Gpt2Tokenizer gpt2(xsa::text::gpt2_vocabulary_folder());
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<xsa::text::Token> whole, parts;
  gpt2.encode(text, whole);
  if (gpt2.decode(whole) != text) std::abort();
  const std::size_t cut = gpt2.safe_prefix(std::string_view(text).substr(0, size - size / 4));
  gpt2.encode(text.substr(0, cut), parts);
  gpt2.encode(text.substr(cut), parts);
  if (parts != whole) std::abort();
  return 0;
}
