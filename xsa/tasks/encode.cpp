#include "xsa/tasks/encode.h"

#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/text/case.h"

namespace xsa::tasks {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

void encode_alone(const text::Tokenizer& tokenizer, Request& request) {
  std::vector<text::Token> ids = encode_text(tokenizer, request.continuation);
  request.context_ids = {tokenizer.end_of_text()};
  if (!ids.empty() && ids.front() == tokenizer.end_of_text()) ids.erase(ids.begin());
  request.continuation_ids = std::move(ids);
}

}  // namespace

std::vector<text::Token> encode_text(const text::Tokenizer& tokenizer, std::string_view text) {
  std::vector<text::Token> ids;
  for (std::size_t found; (found = text.find(kEndOfText)) != std::string_view::npos;) {
    tokenizer.encode(text.substr(0, found), ids);
    ids.push_back(tokenizer.end_of_text());
    text.remove_prefix(found + kEndOfText.size());
  }
  tokenizer.encode(text, ids);
  return ids;
}

void encode_request(const text::Tokenizer& tokenizer, Request& request) {
  if (request.context.empty()) {
    encode_alone(tokenizer, request);
  } else {
    const std::string_view context = text::rstrip(request.context);
    check(!context.empty(), "expected a context with more than white space in it");
    const std::vector<text::Token> whole =
        encode_text(tokenizer, request.context + request.continuation);
    request.context_ids = encode_text(tokenizer, context);
    const std::size_t shared = std::min(request.context_ids.size(), whole.size());
    request.continuation_ids.assign(whole.begin() + static_cast<std::ptrdiff_t>(shared),
                                    whole.end());
  }
  check(!request.continuation_ids.empty(), "expected a continuation of one token or more");
}

}  // namespace xsa::tasks
