// Continues token sequences, several at once, over kept keys and values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xsa/base/fields.h"
#include "xsa/model/decoder.h"
#include "xsa/text/tokenizer.h"

namespace xsa::generate {

struct GenerateConfig {
  std::int64_t max_tokens = 200;
  std::int64_t samples = 1;
  double temperature = 1.0;
  std::int64_t top_k = 0;
  double top_p = 1.0;
  std::int64_t seed = 1337;
  std::int64_t batch = 16;
  std::string at_context_end = "stop";
  bool ignore_end_of_text = false;
  bool log_probabilities = false;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("max_tokens", self.max_tokens, "most new tokens of a sequence", at_least(1));
    field("samples", self.samples, "continuations of each prompt", between(1, 1 << 20));
    field("temperature", self.temperature, "logits are divided by it; 0: always the likeliest",
          between(0, 1000));
    field("top_k", self.top_k, "draw among the k likeliest; 0: all", at_least(0));
    field("top_p", self.top_p, "draw among the fewest whose probabilities sum to this",
          between(0, 1));
    field("seed", self.seed, "of the draws; each sequence has a stream of its own", at_least(0));
    field("batch", self.batch, "sequences at once; does not change what they say",
          between(1, model::kFewRows));
    field("at_context_end", self.at_context_end,
          "where the context is full: stop, or slide: go on from the latest half of it",
          one_of({"stop", "slide"}));
    field("ignore_end_of_text", self.ignore_end_of_text, "go on beyond the end of a text");
    field("log_probabilities", self.log_probabilities, "of each new token, into the JSON");
  }
};

enum class Ending { kEndOfText, kMaxTokens, kContext };
/// "end_of_text", "max_tokens" or "context".
const char* name_of(Ending ending);

/// One sequence, done.
struct Continuation {
  std::size_t prompt = 0;
  std::int64_t sample = 0;
  std::vector<text::Token> tokens;        // the new ones, without end of text
  std::vector<double> log_probabilities;  // theirs, whatever the sampling; if they were asked for
  Ending ending = Ending::kMaxTokens;
};

struct Timing {
  std::int64_t prompt_tokens = 0, new_tokens = 0;
  double prompt_seconds = 0, step_seconds = 0;
};

/// What happens on the way; sequences are numbered prompt by prompt, sample by sample.
struct Events {
  std::function<void(std::size_t sequence, text::Token token)> token;  // each new one
  std::function<void(std::size_t sequence)> done;
  std::function<bool()> stop;  // asked before every step: true leaves all as it is
};

struct Vocabulary {
  std::int64_t size;  // tokens that the tokenizer knows: no other is drawn
  text::Token end_of_text;
  text::Token begin_of_text = end_of_text;  // what an empty prompt becomes
};

/// Throws UsageError for a prompt beyond the context, where that is to stop.
void check_prompts(const std::vector<std::vector<text::Token>>& prompts, std::int64_t context,
                   const GenerateConfig& config);

/// Continues every prompt `samples` times; an empty one begins after begin_of_text. Sequence n
/// draws from the stream of (seed, n): what it says depends neither on its neighbours nor on
/// `batch`. Throws as check_prompts.
std::vector<Continuation> generate(const model::Decoder& decoder, const Vocabulary& vocabulary,
                                   const std::vector<std::vector<text::Token>>& prompts,
                                   const GenerateConfig& config, const Events& events = {},
                                   Timing* timing = nullptr);

}  // namespace xsa::generate
