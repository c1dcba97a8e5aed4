#include "xsa/generate/generate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "tests/support/model_variants.h"
#include "tests/support/temp_folder.h"

namespace xsa::generate {
namespace {

using model::Decoder;
using model::Gpt;
using model::ModelConfig;
using ::testing::HasSubstr;
using text::Token;
using Tokens = std::vector<Token>;

constexpr Vocabulary kVocabulary{31, 30};

ModelConfig small() {
  ModelConfig config;
  config.layers = 2;
  config.width = 24;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.context = 40;
  config.vocab_size = 33;    // more rows than tokens
  config.tied_head = false;  // a tied one likes what it has just seen
  return config;
}

Gpt awake(const ModelConfig& config) {
  Gpt model(config, 11);
  const at::NoGradGuard guard;
  at::manual_seed(12);
  for (const model::NamedTensor& p : model.parameters())
    p.tensor.add_(at::randn(p.tensor.sizes()), 0.5);
  return model;
}

GenerateConfig greedy(std::int64_t max_tokens) {
  GenerateConfig config;
  config.max_tokens = max_tokens;
  config.temperature = 0;
  config.ignore_end_of_text = true;
  return config;
}

std::vector<Continuation> run(const ModelConfig& config, const std::vector<Tokens>& prompts,
                              const GenerateConfig& settings, const Events& events = {}) {
  return generate(Decoder(awake(config)), kVocabulary, prompts, settings, events);
}

/// The uncached model's logits after `tokens`.
at::Tensor logits_after(const Gpt& model, const Tokens& tokens) {
  const at::NoGradGuard guard;
  at::Tensor input = at::empty({1, static_cast<std::int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), input.mutable_data_ptr<std::int64_t>());
  return model.logits(input)[0][-1].narrow(0, 0, kVocabulary.size);
}

/// Each token is the uncached model's first choice wherever that is more than a rounding ahead.
void expect_greedy(const Gpt& model, Tokens seen, const Tokens& tokens) {
  int clear = 0;
  for (const Token token : tokens) {
    const auto [values, ids] = at::topk(logits_after(model, seen), 2);
    const bool is_clear = (values[0] - values[1]).item<double>() > 1e-4;
    clear += is_clear;
    if (is_clear) {
      ASSERT_EQ(static_cast<std::int64_t>(token), ids[0].item<std::int64_t>())
          << "after " << seen.size();
    }
    seen.push_back(token);
  }
  EXPECT_GT(clear, static_cast<int>(tokens.size()) * 9 / 10);
}

TEST(Generate, IsTheUncachedModelsGreedyChoice) {
  std::vector<ModelConfig> configs{small(), small(), all_variants(small())};
  configs[1].attention = "standard";
  configs[1].window = 6;
  for (const ModelConfig& config : configs) {
    const auto results = run(config, {{3, 1, 4}, {15}, {9, 2, 6, 5}}, greedy(30));
    const Gpt model = awake(config);
    expect_greedy(model, {3, 1, 4}, results[0].tokens);
    expect_greedy(model, {15}, results[1].tokens);
    expect_greedy(model, {9, 2, 6, 5}, results[2].tokens);
    std::set<Token> different;
    for (const Continuation& each : results) {
      EXPECT_EQ(each.tokens.size(), 30u);
      EXPECT_EQ(each.ending, Ending::kMaxTokens);
      different.insert(each.tokens.begin(), each.tokens.end());
    }
    EXPECT_GT(different.size(), 3u) << "a model that only repeats shows little";
  }
}

GenerateConfig sampling(std::int64_t max_tokens) {
  GenerateConfig config;
  config.max_tokens = max_tokens;
  config.top_p = 0.95;
  return config;
}

TEST(Generate, SaysTheSameWhateverIsGeneratedBesideIt) {
  const std::vector<Tokens> prompts = {{1, 2, 3}, {4}, {5, 6}, {7, 8, 9, 10, 11}};
  GenerateConfig config = sampling(25);
  config.samples = 3;
  const auto together = run(small(), prompts, config);
  ASSERT_EQ(together.size(), 12u);
  for (const std::int64_t batch : {1, 2, 5}) {
    config.batch = batch;
    const auto other = run(small(), prompts, config);
    for (std::size_t n = 0; n < 12; ++n) {
      EXPECT_EQ(other[n].tokens, together[n].tokens) << "batch " << batch << ", sequence " << n;
      EXPECT_EQ(other[n].ending, together[n].ending);
    }
  }
  // Other neighbours, the same place.
  const auto changed = run(small(), {{20}, {21, 22, 23, 24}, {5, 6}, {25}}, config);
  for (std::size_t n = 6; n < 9; ++n) EXPECT_EQ(changed[n].tokens, together[n].tokens);
}

TEST(Generate, SaysTheSameOnAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  std::vector<std::vector<Tokens>> said;
  for (const int count : {1, 2}) {
    at::set_num_threads(count);
    said.emplace_back();
    for (const Continuation& each : run(small(), {{1, 2, 3}, {4}}, sampling(30)))
      said.back().push_back(each.tokens);
  }
  at::set_num_threads(threads);
  EXPECT_EQ(said[0], said[1]);
}

TEST(Generate, DrawsAnotherTextForEachSampleAndSeed) {
  GenerateConfig config = sampling(20);
  config.samples = 2;
  const auto first = run(small(), {{1, 2, 3}, {1, 2, 3}}, config);
  config.seed = 7;
  const auto second = run(small(), {{1, 2, 3}, {1, 2, 3}}, config);
  std::vector<Tokens> all;
  for (const auto& results : {first, second})
    for (const Continuation& each : results) all.push_back(each.tokens);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(first[1].prompt, 0u);
  EXPECT_EQ(first[1].sample, 1);
  EXPECT_EQ(first[2].prompt, 1u);
}

/// The token that follows `prompt` at temperature 0.
Token next_of(const Tokens& prompt) { return run(small(), {prompt}, greedy(1))[0].tokens[0]; }

TEST(Generate, EndsWithTheTextUnlessItIsToGoOn) {
  GenerateConfig config = greedy(5);
  config.ignore_end_of_text = false;
  const Token first = next_of({3, 1, 4});
  const Decoder decoder(awake(small()));
  const auto results = generate(decoder, {31, first}, {{3, 1, 4}}, config);
  EXPECT_EQ(results[0].ending, Ending::kEndOfText);
  EXPECT_TRUE(results[0].tokens.empty());
  config.ignore_end_of_text = true;
  EXPECT_EQ(generate(decoder, {31, first}, {{3, 1, 4}}, config)[0].tokens.size(), 5u);
}

TEST(Generate, TakesAnyNumberOfTokens) {
  GenerateConfig config = greedy(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(run(small(), {{1, 2}}, config)[0].tokens.size(), 39u);
}

TEST(Generate, BeginsATextWhereThereIsNoPrompt) {
  EXPECT_EQ(run(small(), {{}}, greedy(10))[0].tokens, run(small(), {{30}}, greedy(10))[0].tokens);
}

TEST(Generate, StopsWhereTheContextIsFull) {
  const auto results = run(small(), {Tokens(37, 5), Tokens(40, 6), Tokens(10, 7)}, greedy(20));
  // The last token of a context still predicts one.
  EXPECT_EQ(results[0].tokens.size(), 4u);
  EXPECT_EQ(results[0].ending, Ending::kContext);
  EXPECT_EQ(results[1].tokens.size(), 1u);
  EXPECT_EQ(results[1].ending, Ending::kContext);
  EXPECT_EQ(results[2].tokens.size(), 20u);
}

/// The log-probabilities are the uncached model's where it sees `seen` and what follows it.
void expect_seen(const Gpt& model, Tokens seen, const Continuation& said, std::size_t begin,
                 std::size_t end) {
  for (std::size_t n = begin; n < end; ++n) {
    const at::Tensor expected = at::log_softmax(logits_after(model, seen), 0);
    ASSERT_NEAR(said.log_probabilities[n], expected[said.tokens[n]].item<double>(), 1e-3) << n;
    seen.push_back(said.tokens[n]);
  }
}

TEST(Generate, GivesTheLogProbabilityOfEachToken) {
  GenerateConfig config = sampling(12);
  config.log_probabilities = true;
  const auto results = run(small(), {{1, 2}}, config);
  ASSERT_EQ(results[0].log_probabilities.size(), results[0].tokens.size());
  expect_seen(awake(small()), {1, 2}, results[0], 0, results[0].tokens.size());
}

TEST(Generate, GoesOnFromTheLatestHalfOfTheContextWhereItIsToSlide) {
  GenerateConfig config = sampling(60);
  config.top_p = 1, config.temperature = 3;
  config.at_context_end = "slide";
  config.ignore_end_of_text = config.log_probabilities = true;
  Tokens prompt;
  for (Token n = 0; n < 30; ++n) prompt.push_back(n * 7 % 31);
  const auto results = run(small(), {prompt, {1}}, config);
  const Continuation& said = results[0];
  ASSERT_EQ(said.tokens.size(), 60u);
  const Gpt model = awake(small());
  expect_seen(model, prompt, said, 0, 11);  // sees up to 40
  Tokens latest = prompt;
  latest.insert(latest.end(), said.tokens.begin(), said.tokens.begin() + 11);
  const Tokens half(latest.end() - 20, latest.end());  // of 41
  expect_seen(model, half, said, 11, 32);
  // A prompt that is too long is treated alike.
  expect_seen(model, half, run(small(), {latest}, config)[0], 0, 5);
}

TEST(Generate, RefusesAPromptBeyondTheContextThatMayNotSlide) {
  EXPECT_THAT(
      xsa::testing::error_of<UsageError>([] { run(small(), {{1}, Tokens(41, 5)}, greedy(5)); }),
      ::testing::AllOf(
          HasSubstr("prompt 2: expected at most 40 tokens, the model's context, got 41"),
          HasSubstr("--at-context-end slide")));
}

TEST(Generate, NeverDrawsWhatTheTokenizerDoesNotKnow) {
  GenerateConfig config = sampling(35);
  config.samples = 20;
  config.temperature = 50, config.top_p = 1;
  for (const Continuation& each : run(small(), {{1}}, config))
    for (const Token token : each.tokens) EXPECT_LT(token, 31u);
}

TEST(Generate, TellsEachTokenAsItComes) {
  std::vector<Tokens> told(3);
  std::vector<std::size_t> done;
  Events events;
  events.token = [&](std::size_t sequence, Token token) { told[sequence].push_back(token); };
  events.done = [&](std::size_t sequence) { done.push_back(sequence); };
  const auto results = run(small(), {{1}, Tokens(39, 2), {3}}, greedy(6), events);
  for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(told[n], results[n].tokens);
  EXPECT_EQ(done, (std::vector<std::size_t>{1, 0, 2}));
}

TEST(Generate, StopsWhenAsked) {
  int left = 4;
  Events events;
  events.stop = [&] { return left-- == 0; };
  const auto results = run(small(), {{1}}, greedy(30), events);
  EXPECT_LT(results[0].tokens.size(), 4u);
}

}  // namespace
}  // namespace xsa::generate
