// The GPT-2 tokenizer as C functions, so that bench/tokenizer_bench.py can time it and tiktoken in
// one process.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include "xsa/text/tokenizer.h"

namespace {

const xsa::text::Tokenizer& tokenizer() {
  static const std::unique_ptr<xsa::text::Tokenizer> it = xsa::text::make_tokenizer("gpt2");
  return *it;
}

std::vector<xsa::text::Token>& ids() {
  static std::vector<xsa::text::Token> it;
  return it;
}

}  // namespace

extern "C" {

/// Encodes on `threads` threads; the ids stay valid until the next call. Returns their number, or
/// -1 with a message on stderr.
std::int64_t xsa_encode(const char* text, std::int64_t size, std::int64_t threads,
                        const xsa::text::Token** result) {
  try {
    ids().clear();
    xsa::text::encode(tokenizer(), {text, static_cast<std::size_t>(size)}, ids(),
                      threads == 1 ? xsa::serial() : xsa::threads(threads));
    *result = ids().data();
    return static_cast<std::int64_t>(ids().size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return -1;
  }
}

/// Loads the vocabulary anew and throws it away.
int xsa_load() {
  try {
    xsa::text::make_tokenizer("gpt2");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return -1;
  }
}
}
