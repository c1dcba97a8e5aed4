#include "xsa/eval/scorer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/model_variants.h"
#include "xsa/base/error.h"

namespace xsa::eval {
namespace {

using Tokens = std::vector<text::Token>;

model::ModelConfig shape(const std::string& attention, const std::string& position) {
  model::ModelConfig config;
  config.layers = 3;
  config.width = 24;
  config.heads = 4;
  config.head_dim = 8;
  config.context = 40;
  config.vocab_size = 61;
  config.attention = attention;
  config.position = position;
  return config;
}

/// Initial weights are small and tell little apart.
model::Gpt awake(const model::ModelConfig& config) {
  model::Gpt model(config, 11);
  const at::NoGradGuard guard;
  at::set_num_threads(1);  // tiny products: two threads would only wait for each other
  at::manual_seed(12);
  for (const model::NamedTensor& p : model.parameters())
    p.tensor.add_(at::randn(p.tensor.sizes()), 0.3);
  return model;
}

/// The model's own two tokens after `context`, of at most 38.
Tokens greedy(const model::Gpt& model, const Tokens& context, std::int64_t vocabulary) {
  const at::NoGradGuard guard;
  std::vector<std::int64_t> all(context.begin(), context.end());
  for (int i = 0; i < 2; ++i) {
    const at::Tensor logits = model.logits(at::tensor(all, at::kLong).unsqueeze(0));
    all.push_back(logits[0][-1].narrow(0, 0, vocabulary).argmax().item<std::int64_t>());
  }
  return {all.end() - 2, all.end()};
}

/// Records of one to five choices, of which some share their context, some a part of it, some see
/// the same tokens, and some are longer than the context.
struct Asked {
  std::vector<std::pair<Tokens, Tokens>> ids;
  std::vector<std::int64_t> records;
  std::vector<Item> items;

  Asked(std::int64_t count, const model::Gpt& model, std::int64_t vocabulary) {
    std::mt19937 random(7);
    const auto draw = [&](std::int64_t min, std::int64_t max) {
      return min + static_cast<std::int64_t>(random() % static_cast<unsigned>(max - min + 1));
    };
    const auto tokens = [&](std::int64_t length) {
      Tokens result;
      for (std::int64_t i = 0; i < length; ++i)
        result.push_back(static_cast<text::Token>(draw(0, vocabulary - 1)));
      return result;
    };
    for (std::int64_t record = 0; record < count; ++record) {
      const Tokens context = tokens(draw(1, record % 5 == 0 ? 60 : 20));
      const Tokens start = tokens(draw(0, 3));
      for (std::int64_t choice = draw(1, 5); choice > 0; --choice) {
        Tokens own = context, continuation = start;
        if (record % 3 == 1) own.push_back(static_cast<text::Token>(choice));
        const bool likely = record % 3 == 2 && record % 5 != 0 && start.empty();
        const Tokens rest =
            likely ? greedy(model, own, vocabulary) : tokens(draw(1, record % 4 == 0 ? 1 : 9));
        continuation.insert(continuation.end(), rest.begin(), rest.end());
        ids.emplace_back(own, continuation);
        records.push_back(record);
      }
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      items.push_back({ids[i].first, ids[i].second, records[i]});
  }
};

/// The definition: the whole sequence through the model, log-softmax in double.
tasks::Score oracle(const model::Gpt& model, const Item& item, std::int64_t vocabulary) {
  const at::NoGradGuard guard;
  std::vector<std::int64_t> all(item.context.begin(), item.context.end());
  all.insert(all.end(), item.continuation.begin(), item.continuation.end());
  const auto excess = static_cast<std::int64_t>(all.size()) - (model.config().context + 1);
  if (excess > 0) all.erase(all.begin(), all.begin() + excess);
  const at::Tensor input = at::tensor(all, at::kLong).narrow(0, 0, std::ssize(all) - 1);
  const at::Tensor log_p = at::log_softmax(
      model.logits(input.unsqueeze(0)).squeeze(0).narrow(1, 0, vocabulary), 1, at::kDouble);
  tasks::Score score{.log_likelihood = 0, .greedy = true};
  for (std::int64_t i = 0; i < std::ssize(item.continuation); ++i) {
    const at::Tensor row = log_p[log_p.size(0) - std::ssize(item.continuation) + i];
    const auto token = static_cast<std::int64_t>(item.continuation[static_cast<std::size_t>(i)]);
    score.log_likelihood += row[token].item<double>();
    score.greedy = score.greedy && row.argmax().item<std::int64_t>() == token;
  }
  return score;
}

std::vector<tasks::Score> scores_of(Scorer& scorer, std::span<const Item> items) {
  std::vector<tasks::Score> result(items.size());
  std::vector<int> times(items.size());
  scorer.score(items, [&](std::span<const Scored> scored) {
    for (const Scored& s : scored) {
      result[static_cast<std::size_t>(s.item)] = s.score;
      ++times[static_cast<std::size_t>(s.item)];
    }
  });
  EXPECT_THAT(times, testing::Each(1)) << "each item is scored once";
  return result;
}

void expect_close(const std::vector<tasks::Score>& got, const std::vector<tasks::Score>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  int greedy = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got[i].log_likelihood));
    EXPECT_NEAR(got[i].log_likelihood, expected[i].log_likelihood, 1e-4) << "item " << i;
    EXPECT_EQ(got[i].greedy, expected[i].greedy) << "item " << i;
    greedy += expected[i].greedy;
  }
  EXPECT_GT(greedy, 0) << "some continuations should be greedy";
}

TEST(Scorer, EqualsTheWholeSequenceInDouble) {
  for (const char* attention : {"standard", "exclusive"}) {
    for (const char* position : {"rope", "learned", "none"}) {
      SCOPED_TRACE(std::string(attention) + ", " + position);
      const model::Gpt model = awake(shape(attention, position));
      const Asked asked(120, model, 61);
      std::vector<tasks::Score> expected;
      for (const Item& item : asked.items) expected.push_back(oracle(model, item, 61));
      Scorer scorer(model, 61, {.tokens = 300});
      expect_close(scores_of(scorer, asked.items), expected);
    }
  }
}

TEST(Scorer, EqualsTheWholeSequenceWithAWindowAndGroupedHeads) {
  model::ModelConfig config = shape("exclusive", "rope");
  config.kv_heads = 2;
  config.window = 7;
  config.bias = true;
  config.tied_head = false;
  const model::Gpt model = awake(config);
  const Asked asked(60, model, 61);
  std::vector<tasks::Score> expected;
  for (const Item& item : asked.items) expected.push_back(oracle(model, item, 61));
  Scorer scorer(model, 61);
  expect_close(scores_of(scorer, asked.items), expected);
}

TEST(Scorer, EqualsTheWholeSequenceWithSinksGatesAndLearnedStrengths) {
  const model::Gpt model = awake(all_variants(shape("exclusive", "rope")));
  const Asked asked(60, model, 61);
  std::vector<tasks::Score> expected;
  for (const Item& item : asked.items) expected.push_back(oracle(model, item, 61));
  Scorer scorer(model, 61);
  expect_close(scores_of(scorer, asked.items), expected);
}

TEST(Scorer, ScoresDoNotDependOnThePacks) {
  const model::Gpt model = awake(shape("exclusive", "rope"));
  const Asked asked(120, model, 61);
  Scorer alone(model, 61, {.items = 1});
  const std::vector<tasks::Score> expected = scores_of(alone, asked.items);
  for (const Budget budget :
       {Budget{.items = 32}, Budget{.items = 3}, Budget{.tokens = 1}, Budget{.tokens = 100'000}}) {
    Scorer scorer(model, 61, budget);
    expect_close(scores_of(scorer, asked.items), expected);
  }
}

TEST(Scorer, PaddedRowsOfTheVocabularyTakeNoPart) {
  const model::Gpt model = awake(shape("standard", "rope"));
  const Asked asked(60, model, 50);
  std::vector<tasks::Score> expected;
  for (const Item& item : asked.items) expected.push_back(oracle(model, item, 50));
  Scorer scorer(model, 50);
  expect_close(scores_of(scorer, asked.items), expected);
}

TEST(Scorer, TheFirstIndexWinsATie) {
  const model::Gpt model = awake(shape("standard", "rope"));
  {
    const at::NoGradGuard guard;
    for (const model::NamedTensor& p : model.parameters())
      if (p.name == "transformer.wte.weight") p.tensor.select(0, 9).copy_(p.tensor.select(0, 5));
  }
  // A context after which 5 and 9, now equal, are the best.
  at::manual_seed(3);
  const at::NoGradGuard guard;
  for (text::Token first = 0; first < 61; ++first) {
    for (text::Token second = 0; second < 61; ++second) {
      const at::Tensor input = at::tensor({std::int64_t{first}, std::int64_t{second}}, at::kLong);
      if (model.logits(input.unsqueeze(0))[0][1].argmax().item<std::int64_t>() != 5) continue;
      const Tokens context = {first, second}, five = {5}, nine = {9};
      const std::vector<Item> items = {{context, nine, 0}, {context, five, 0}};
      Scorer scorer(model, 61);
      const std::vector<tasks::Score> scores = scores_of(scorer, items);
      EXPECT_EQ(scores[0].log_likelihood, scores[1].log_likelihood);
      EXPECT_FALSE(scores[0].greedy);
      EXPECT_TRUE(scores[1].greedy);
      return;
    }
  }
  FAIL() << "no context prefers token 5";
}

TEST(Scorer, ComputesEachTokenOnceAndLogitsOnlyWhereNeeded) {
  const model::Gpt model = awake(shape("standard", "rope"));
  const Tokens context = {1, 2, 3, 4, 5, 6}, a = {7, 8}, b = {9, 10, 11}, c = {12};
  const std::vector<Item> items = {{context, a, 0}, {context, b, 0}, {context, c, 0}};
  Scorer scorer(model, 61);
  scores_of(scorer, items);
  EXPECT_EQ(scorer.tokens_computed(), 6 + 1 + 2);
  EXPECT_EQ(scorer.rows_scored(), 1 + 1 + 2);
}

TEST(Scorer, RefusesWhatItCannotScore) {
  const model::Gpt model = awake(shape("standard", "rope"));
  EXPECT_THROW(Scorer(model, 62), UsageError);
  Scorer scorer(model, 61);
  const Tokens none, one = {1}, long_one(41, 1), longest(40, 1);
  const auto score = [&](const Tokens& context, const Tokens& continuation) {
    const std::vector<Item> items = {{context, continuation, 0}};
    return scores_of(scorer, items).front();
  };
  EXPECT_THROW(score(none, one), Error);
  EXPECT_THROW(score(one, none), Error);
  EXPECT_THROW(score(one, long_one), Error);
  EXPECT_TRUE(std::isfinite(score(one, longest).log_likelihood));
  EXPECT_THAT(scores_of(scorer, {}), testing::IsEmpty());
}

}  // namespace
}  // namespace xsa::eval
