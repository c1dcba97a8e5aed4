// From a request's texts to its token ids, as the harness does it for a causal model.
#pragma once

#include <string_view>
#include <vector>

#include "xsa/tasks/request.h"

namespace xsa::tasks {

/// The ids of a text in which a special token's text, as "<|endoftext|>", is that token: so the
/// harness's tokenizers read it. (Training text is encoded without such exceptions.)
std::vector<text::Token> encode_text(const text::Tokenizer& tokenizer, std::string_view text);

/// Fills both lists of ids. An empty context becomes the token begin_of_text(), unless the
/// continuation begins with it. Else white space that ends the context goes to the continuation,
/// and the continuation's ids are those of the whole text after as many as the context alone has.
/// Throws Error where either list would be empty.
void encode_request(const text::Tokenizer& tokenizer, Request& request);

}  // namespace xsa::tasks
