#include "xsa/text/tokenizer.h"

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/text/byte_tokenizer.h"

namespace xsa::text {

std::vector<std::string> tokenizer_names() { return {"byte"}; }

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name) {
  if (name == "byte") return std::make_unique<ByteTokenizer>();
  std::string known;
  for (const std::string& each : tokenizer_names()) known += (known.empty() ? "" : ", ") + each;
  throw UsageError(cat("tokenizer: expected one of ", known, ", got '", name, "'",
                       did_you_mean(name, tokenizer_names())));
}

}  // namespace xsa::text
