#include "xsa/generate/generate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <optional>
#include <span>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/rng.h"
#include "xsa/generate/sampler.h"

namespace xsa::generate {
namespace {

using model::Decoder;
using model::Segment;
using model::SequenceCache;
using Tokens = std::vector<text::Token>;

/// The stream of one sequence.
Rng stream(std::int64_t seed, std::size_t sequence) {
  Rng of_seed(static_cast<std::uint64_t>(seed));
  return Rng(of_seed.next() ^ (static_cast<std::uint64_t>(sequence) * 0x9e3779b97f4a7c15ULL));
}

at::Tensor as_tensor(const text::Token* first, std::size_t count) {
  const at::Tensor tokens = at::empty({static_cast<std::int64_t>(count)}, at::kLong);
  std::copy(first, first + count, tokens.mutable_data_ptr<std::int64_t>());
  return tokens;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A sequence in progress.
struct Sequence {
  std::size_t number;
  Tokens tokens;  // prompt and what followed
  Rng rng;
  SequenceCache cache;
  at::Tensor logits;  // [V], of its last token
};

class Generation {
 public:
  Generation(const Decoder& decoder, const Vocabulary& vocabulary,
             const std::vector<Tokens>& prompts, const GenerateConfig& config, const Events& events)
      : decoder_(decoder),
        vocabulary_(vocabulary),
        prompts_(prompts),
        config_(config),
        events_(events),
        sampler_({config.temperature, config.top_k, config.top_p}),
        results_(prompts.size() * static_cast<std::size_t>(config.samples)) {
    for (std::size_t n = 0; n < results_.size(); ++n) {
      results_[n].prompt = n / static_cast<std::size_t>(config.samples);
      results_[n].sample = static_cast<std::int64_t>(n % static_cast<std::size_t>(config.samples));
    }
  }

  std::vector<Continuation> run() {
    while (!stopped() && (next_ < results_.size() || !active_.empty())) {
      while (next_ < results_.size() && active_.size() < static_cast<std::size_t>(config_.batch) &&
             !stopped())
        start(next_++);
      draw();
      step();
    }
    return std::move(results_);
  }
  const Timing& timing() const { return timing_; }

 private:
  bool stopped() const { return events_.stop && events_.stop(); }
  std::int64_t context() const { return decoder_.config().context; }

  /// What the model sees of the tokens: all, or the latest half of a context.
  std::size_t first_seen(const Tokens& tokens) const {
    const auto limit = static_cast<std::size_t>(context());
    return tokens.size() <= limit ? 0 : tokens.size() - std::max<std::size_t>(1, limit / 2);
  }

  void start(std::size_t number) {
    Tokens tokens = prompts_[results_[number].prompt];
    if (tokens.empty()) tokens.push_back(vocabulary_.begin_of_text);
    const std::int64_t room =
        static_cast<std::int64_t>(tokens.size()) + std::min(config_.max_tokens, context());
    Sequence sequence{number,
                      std::move(tokens),
                      stream(config_.seed, number),
                      SequenceCache(decoder_.config(), std::min(room, context())),
                      {}};
    if (prefix_ && prefix_->first == results_[number].prompt) {
      sequence.cache.copy_from(prefix_->second.cache);
      sequence.logits = prefix_->second.logits;
    } else {
      prefill(sequence);
      prefix_.reset();
      if (results_[number].sample + 1 < config_.samples) keep_prefix(sequence);
    }
    active_.push_back(std::move(sequence));
  }

  void keep_prefix(const Sequence& sequence) {
    SequenceCache cache(decoder_.config(), sequence.cache.length());
    cache.copy_from(sequence.cache);
    prefix_.emplace(results_[sequence.number].prompt, Prefix{std::move(cache), sequence.logits});
  }

  /// Reads the sequence's tokens from their first seen on, the cache being empty.
  void prefill(Sequence& sequence) {
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t first = first_seen(sequence.tokens), count = sequence.tokens.size() - first;
    sequence.cache.truncate(0);
    const Segment segment{static_cast<std::int64_t>(count), &sequence.cache};
    const at::Tensor hidden =
        decoder_.forward(as_tensor(sequence.tokens.data() + first, count), {&segment, 1});
    sequence.logits = decoder_.logits(hidden.narrow(0, hidden.size(0) - 1, 1), vocabulary_.size)[0];
    timing_.prompt_tokens += static_cast<std::int64_t>(count);
    timing_.prompt_seconds += seconds_since(begin);
  }

  /// Draws a token for every active sequence; those that end with it leave.
  void draw() {
    const auto begin = std::chrono::steady_clock::now();
    for (auto sequence = active_.begin(); sequence != active_.end();) {
      const std::optional<Ending> ending = draw(*sequence);
      if (!ending) {
        ++sequence;
        continue;
      }
      results_[sequence->number].ending = *ending;
      if (events_.done) events_.done(sequence->number);
      sequence = active_.erase(sequence);
    }
    timing_.step_seconds += seconds_since(begin);
  }

  std::optional<Ending> draw(Sequence& sequence) {
    const std::span<const float> logits{sequence.logits.const_data_ptr<float>(),
                                        static_cast<std::size_t>(sequence.logits.numel())};
    const text::Token token = sampler_.next(logits, sequence.rng);
    ++timing_.new_tokens;
    if (token == vocabulary_.end_of_text && !config_.ignore_end_of_text) return Ending::kEndOfText;
    Continuation& result = results_[sequence.number];
    result.tokens.push_back(token);
    if (config_.log_probabilities)
      result.log_probabilities.push_back(log_probability(logits, token));
    sequence.tokens.push_back(token);
    if (events_.token) events_.token(sequence.number, token);
    if (static_cast<std::int64_t>(result.tokens.size()) == config_.max_tokens)
      return Ending::kMaxTokens;
    if (sequence.cache.length() == context() && config_.at_context_end == "stop")
      return Ending::kContext;
    return std::nullopt;
  }

  /// One more token through the model for every active sequence.
  void step() {
    if (active_.empty()) return;
    Tokens latest;
    std::vector<Segment> segments;
    std::vector<Sequence*> stepping;
    for (Sequence& sequence : active_) {
      if (sequence.cache.length() == context()) {
        prefill(sequence);
        continue;
      }
      latest.push_back(sequence.tokens.back());
      segments.push_back({1, &sequence.cache});
      stepping.push_back(&sequence);
    }
    if (stepping.empty()) return;
    const auto begin = std::chrono::steady_clock::now();
    const at::Tensor hidden = decoder_.forward(as_tensor(latest.data(), latest.size()), segments);
    const at::Tensor logits = decoder_.logits(hidden, vocabulary_.size);
    for (std::size_t n = 0; n < stepping.size(); ++n)
      stepping[n]->logits = logits[static_cast<std::int64_t>(n)];
    timing_.step_seconds += seconds_since(begin);
  }

  struct Prefix {
    SequenceCache cache;
    at::Tensor logits;
  };

  const Decoder& decoder_;
  const Vocabulary& vocabulary_;
  const std::vector<Tokens>& prompts_;
  const GenerateConfig& config_;
  const Events& events_;
  Sampler sampler_;
  std::vector<Continuation> results_;
  std::list<Sequence> active_;
  std::optional<std::pair<std::size_t, Prefix>> prefix_;  // a prompt that further samples share
  std::size_t next_ = 0;
  Timing timing_;
};

}  // namespace

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::kEndOfText:
      return "end_of_text";
    case Ending::kMaxTokens:
      return "max_tokens";
    default:
      return "context";
  }
}

void check_prompts(const std::vector<Tokens>& prompts, std::int64_t context,
                   const GenerateConfig& config) {
  for (std::size_t n = 0; n < prompts.size(); ++n)
    check_usage(
        config.at_context_end == "slide" || static_cast<std::int64_t>(prompts[n].size()) <= context,
        "prompt ", n + 1, ": expected at most ", context, " tokens, the model's context, got ",
        prompts[n].size(), "; shorten it, or give --at-context-end slide");
}

std::vector<Continuation> generate(const Decoder& decoder, const Vocabulary& vocabulary,
                                   const std::vector<Tokens>& prompts, const GenerateConfig& config,
                                   const Events& events, Timing* timing) {
  check_prompts(prompts, decoder.config().context, config);
  Generation generation(decoder, vocabulary, prompts, config, events);
  std::vector<Continuation> results = generation.run();
  if (timing) *timing = generation.timing();
  return results;
}

}  // namespace xsa::generate
