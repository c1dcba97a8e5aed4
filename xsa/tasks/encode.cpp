#include "xsa/tasks/encode.h"

#include <algorithm>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/text/case.h"

namespace xsa::tasks {
namespace {

void encode_alone(const text::Tokenizer& tokenizer, Request& request) {
  std::vector<text::Token> ids = encode_text(tokenizer, request.continuation);
  request.context_ids = {tokenizer.begin_of_text()};
  if (!ids.empty() && ids.front() == tokenizer.begin_of_text()) ids.erase(ids.begin());
  request.continuation_ids = std::move(ids);
}

/// The special token that the text holds first, and where: of several in one place the longest.
std::pair<const text::SpecialToken*, std::size_t> find_special(
    const std::vector<text::SpecialToken>& special, std::string_view text) {
  std::pair<const text::SpecialToken*, std::size_t> first = {nullptr, std::string_view::npos};
  for (const text::SpecialToken& each : special) {
    const std::size_t found = text.find(each.text);
    const bool longer = first.first != nullptr && found == first.second &&
                        each.text.size() > first.first->text.size();
    if (found < first.second || longer) first = {&each, found};
  }
  return first;
}

}  // namespace

std::vector<text::Token> encode_text(const text::Tokenizer& tokenizer, std::string_view text) {
  const std::vector<text::SpecialToken> special = tokenizer.special_tokens();
  std::vector<text::Token> ids;
  while (true) {
    const auto [token, at] = find_special(special, text);
    if (token == nullptr) break;
    tokenizer.encode(text.substr(0, at), ids);
    ids.push_back(token->id);
    text.remove_prefix(at + token->text.size());
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
