#include "xsa/model/decoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/model_variants.h"
#include "xsa/base/error.h"

namespace xsa::model {
namespace {

constexpr std::int64_t kVocabulary = 31;

ModelConfig small() {
  ModelConfig config;
  config.layers = 3;
  config.width = 24;
  config.heads = 4;
  config.head_dim = 8;
  config.context = 40;
  config.vocab_size = kVocabulary;
  return config;
}

/// Initial weights are small and tell little apart: larger ones, still the same for every caller.
Gpt awake(const ModelConfig& config) {
  Gpt model(config, 11);
  const at::NoGradGuard guard;
  at::manual_seed(12);
  for (const NamedTensor& p : model.parameters()) p.tensor.add_(at::randn(p.tensor.sizes()), 0.2);
  return model;
}

at::Tensor tokens(std::int64_t count, std::uint64_t seed = 13) {
  at::manual_seed(seed);
  return at::randint(kVocabulary, {count}, at::kLong);
}

/// What the model itself makes of one sequence [T], uncached: [T, C].
at::Tensor whole(const Gpt& model, const at::Tensor& sequence) {
  const at::NoGradGuard guard;
  return model.hidden(sequence.unsqueeze(0)).squeeze(0);
}

void expect_close(const at::Tensor& got, const at::Tensor& expected, double tolerance = 2e-5) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  ASSERT_TRUE(got.isfinite().all().item<bool>());
  const double scale = expected.abs().max().item<double>();
  EXPECT_LT((got - expected).abs().max().item<double>(), tolerance * scale);
}

/// The sequence in pieces of the given lengths, through one cache.
at::Tensor in_pieces(const Decoder& decoder, const at::Tensor& sequence,
                     const std::vector<std::int64_t>& lengths) {
  SequenceCache cache(decoder.config());
  std::vector<at::Tensor> parts;
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    const Segment segment{length, &cache};
    parts.push_back(decoder.forward(sequence.narrow(0, first, length), {&segment, 1}));
    first += length;
    EXPECT_EQ(cache.length(), first);
  }
  return at::cat(parts);
}

void expect_equals_uncached(const ModelConfig& config) {
  const Gpt model = awake(config);
  const Decoder decoder(model);
  const at::Tensor sequence = tokens(40);
  const at::Tensor expected = whole(model, sequence);
  expect_close(in_pieces(decoder, sequence, {40}), expected);
  expect_close(in_pieces(decoder, sequence, {1, 7, 20, 1, 11}), expected);
  expect_close(in_pieces(decoder, sequence, std::vector<std::int64_t>(40, 1)), expected);
}

TEST(Decoder, EqualsTheUncachedModelInPiecesOfAnyLength) { expect_equals_uncached(small()); }

TEST(Decoder, EqualsTheUncachedModelWithStandardAttention) {
  ModelConfig config = small();
  config.attention = "standard";
  expect_equals_uncached(config);
}

TEST(Decoder, EqualsTheUncachedModelWithEveryOptionTurned) {
  ModelConfig config = small();
  config.kv_heads = 2;
  config.head_dim = 10;
  config.exclusive_layers = "0,2";
  config.strength = 0.7;
  config.bias = true;
  config.tied_head = false;
  config.embedding_norm = false;
  config.feed_forward = "gelu_tanh";
  config.feed_forward_width = 50;
  config.position = "learned";
  expect_equals_uncached(config);
}

TEST(Decoder, EqualsTheUncachedModelWithoutPositionsAndWithOneKeyHead) {
  ModelConfig config = small();
  config.position = "none";
  config.kv_heads = 1;
  config.head_dim = 7;
  expect_equals_uncached(config);
}

TEST(Decoder, EqualsTheUncachedModelWithinAWindow) {
  for (const std::int64_t window : {1, 5, 39, 1000}) {
    ModelConfig config = small();
    config.window = window;
    config.kv_heads = 2;
    expect_equals_uncached(config);
  }
}

TEST(Decoder, EqualsTheUncachedModelInEveryVariant) {
  ModelConfig config = small();
  config.layers = 2;
  for (const ModelConfig& variant : every_variant(config)) {
    SCOPED_TRACE(to_json(variant).dump());
    const Gpt model = awake(variant);
    const Decoder decoder(model);
    const at::Tensor sequence = tokens(14);
    const at::Tensor expected = whole(model, sequence);
    expect_close(in_pieces(decoder, sequence, {9, 1, 4}), expected, 5e-5);
    expect_close(in_pieces(decoder, sequence, std::vector<std::int64_t>(14, 1)), expected, 5e-5);
  }
}

TEST(Decoder, KeepsItsSinksWhateverBecomesOfACache) {
  const ModelConfig config = all_variants(small());
  const Gpt model = awake(config);
  const Decoder decoder(model);
  const at::Tensor old = tokens(9, 1), sequence = tokens(12, 2);
  const at::Tensor expected = whole(model, sequence);
  SequenceCache cache(config, 12), copy(config, 12);
  EXPECT_EQ(cache.capacity(), 12);
  const Segment first{9, &cache, false}, twin{12, &cache, false}, all{12, &cache};
  const std::vector<Segment> choices = {first, twin};
  expect_close(decoder.forward(at::cat({old, sequence}), choices).narrow(0, 9, 12), expected);
  decoder.forward(sequence, {&all, 1});
  copy.copy_from(cache);
  copy.truncate(5);
  const Segment rest{7, &copy};
  expect_close(decoder.forward(sequence.narrow(0, 5, 7), {&rest, 1}), expected.narrow(0, 5, 7));
  cache.truncate(0);
  copy.copy_from(cache);
  const Segment again{12, &copy};
  const at::Tensor rows = at::tensor(std::vector<std::int64_t>{3, 11}, at::kLong);
  expect_close(decoder.forward(sequence, {&again, 1}, rows), expected.index_select(0, rows));
}

TEST(Decoder, SeesNothingBeyondTheWindow) {
  ModelConfig config = small();
  config.layers = 1;
  config.window = 4;
  const Gpt model = awake(config);
  const at::Tensor sequence = tokens(40);
  at::Tensor other = sequence.clone();
  other.narrow(0, 0, 36).add_(1).remainder_(kVocabulary);
  EXPECT_TRUE(at::equal(whole(model, sequence)[39], whole(model, other)[39]));
  EXPECT_FALSE(at::allclose(whole(model, sequence)[38], whole(model, other)[38]));
}

TEST(Decoder, TakesSequencesOfManyLengthsInOnePass) {
  const Gpt model = awake(small());
  const Decoder decoder(model);
  const at::Tensor a = tokens(30, 1), b = tokens(17, 2), c = tokens(40, 3);
  SequenceCache cache_a(small()), cache_b(small(), 17), cache_c(small());
  const std::vector<Segment> first = {{9, &cache_a}, {16, &cache_b}, {39, &cache_c}};
  decoder.forward(at::cat({a.narrow(0, 0, 9), b.narrow(0, 0, 16), c.narrow(0, 0, 39)}), first);
  const std::vector<Segment> second = {{1, &cache_c}, {21, &cache_a}, {1, &cache_b}};
  const at::Tensor got = decoder.forward(
      at::cat({c.narrow(0, 39, 1), a.narrow(0, 9, 21), b.narrow(0, 16, 1)}), second);
  expect_close(got, at::cat({whole(model, c).narrow(0, 39, 1), whole(model, a).narrow(0, 9, 21),
                             whole(model, b).narrow(0, 16, 1)}));
}

TEST(Decoder, LetsChoicesShareTheirContext) {
  const Gpt model = awake(small());
  const Decoder decoder(model);
  const at::Tensor context = tokens(20, 1);
  SequenceCache cache(small());
  const Segment prefix{20, &cache};
  decoder.forward(context, {&prefix, 1});
  const at::Tensor a = tokens(5, 2), b = tokens(1, 3), c = tokens(20, 4);
  const std::vector<Segment> choices = {
      {5, &cache, false}, {1, &cache, false}, {20, &cache, false}};
  const at::Tensor got = decoder.forward(at::cat({a, b, c}), choices);
  EXPECT_EQ(cache.length(), 20);
  std::vector<at::Tensor> expected;
  for (const at::Tensor& choice : {a, b, c})
    expected.push_back(whole(model, at::cat({context, choice})).narrow(0, 20, choice.size(0)));
  expect_close(got, at::cat(expected));
  // What the choices left behind the prefix is overwritten by what really follows.
  const Segment next{20, &cache};
  expect_close(decoder.forward(c, {&next, 1}), expected.back());
}

TEST(Decoder, GoesOnFromAnyEarlierTokenOfACache) {
  const Gpt model = awake(small());
  const Decoder decoder(model);
  const at::Tensor old = tokens(30, 1), other = tokens(12, 2);
  SequenceCache cache(small());
  const Segment first{30, &cache}, second{12, &cache};
  decoder.forward(old, {&first, 1});
  cache.truncate(10);
  expect_close(decoder.forward(other, {&second, 1}),
               whole(model, at::cat({old.narrow(0, 0, 10), other})).narrow(0, 10, 12));
}

TEST(Decoder, GivesTheModelsLogitsOverTheTrueVocabulary) {
  for (const bool tied : {true, false}) {
    ModelConfig config = small();
    config.tied_head = tied;
    const Gpt model = awake(config);
    const Decoder decoder(model);
    const at::Tensor sequence = tokens(12);
    const at::NoGradGuard guard;
    const at::Tensor expected = model.logits(sequence.unsqueeze(0)).squeeze(0);
    SequenceCache cache(config);
    const Segment segment{12, &cache};
    const at::Tensor hidden = decoder.forward(sequence, {&segment, 1});
    expect_close(decoder.logits(hidden), expected);
    expect_close(decoder.logits(hidden.narrow(0, 11, 1), 29),
                 expected.narrow(0, 11, 1).narrow(1, 0, 29));
  }
}

TEST(Decoder, IsCloseWithWeightsOfHalfTheSize) {
  ModelConfig config = small();
  config.bias = true;
  for (const ModelConfig& each : {config, all_variants(config)}) {
    const Gpt model = awake(each);
    const Decoder decoder(model, at::kBFloat16);
    const at::Tensor sequence = tokens(40);
    const at::Tensor got = in_pieces(decoder, sequence, {20, 1, 1, 1, 17});
    EXPECT_EQ(got.scalar_type(), at::kFloat);
    expect_close(got, whole(model, sequence), 0.05);
  }
}

TEST(Decoder, TakesNoTokens) {
  const Decoder decoder(awake(small()));
  EXPECT_EQ(decoder.forward(at::empty({0}, at::kLong), {}).sizes(),
            (std::vector<std::int64_t>{0, 24}));
  EXPECT_EQ(decoder.logits(at::empty({0, 24})).sizes(), (std::vector<std::int64_t>{0, 31}));
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  using testing::HasSubstr;
  const Decoder decoder(awake(small()));
  SequenceCache cache(small(), 8);
  const auto run = [&](const at::Tensor& input, const std::vector<Segment>& segments) {
    return refusal([&] { decoder.forward(input, segments); });
  };
  EXPECT_THAT(run(tokens(9), {{9, &cache}}),
              HasSubstr("at most the 8 tokens of a cache, got 0 + 9"));
  EXPECT_THAT(run(tokens(5), {{4, &cache}}), HasSubstr("expected tokens [4]"));
  EXPECT_THAT(run(tokens(4).to(at::kInt), {{4, &cache}}), HasSubstr("type Int"));
  EXPECT_THAT(run(tokens(4) + 31, {{4, &cache}}), HasSubstr("in [0, 31), the vocabulary"));
  EXPECT_THAT(run(tokens(4) - 31, {{4, &cache}}), HasSubstr("in [0, 31), the vocabulary"));
  EXPECT_THAT(run(tokens(0), {{0, &cache}}), HasSubstr("at least 1 token"));
  EXPECT_THAT(run(tokens(4), {{2, &cache}, {2, &cache, false}}), HasSubstr("share a cache"));
  EXPECT_EQ(cache.length(), 0);
  EXPECT_THAT(refusal([&] { cache.truncate(1); }), HasSubstr("of up to 0, what it holds, got 1"));
  EXPECT_THAT(refusal([&] { SequenceCache(small(), 41); }), HasSubstr("the context, got 41"));
  EXPECT_THAT(refusal([&] { decoder.logits(at::empty({1, 24}), 32); }), HasSubstr("up to 31"));
  EXPECT_THAT(refusal([&] { decoder.logits(at::empty({1, 23})); }), HasSubstr("[M, 24]"));
}

TEST(Decoder, OnlyTheRowsThatAreWantedComeBack) {
  const Gpt model = awake(small());
  const Decoder decoder(model);
  const at::Tensor sequence = tokens(20), expected = whole(model, sequence);
  for (const std::vector<std::int64_t>& wanted :
       {std::vector<std::int64_t>{0, 3, 11}, {11}, {}, {5, 2, 5}}) {
    SequenceCache cache(decoder.config());
    const Segment first{12, &cache}, second{8, &cache};
    const at::Tensor rows = at::tensor(wanted, at::kLong);
    const at::Tensor got = decoder.forward(sequence.narrow(0, 0, 12), {&first, 1}, rows);
    ASSERT_EQ(got.size(0), std::ssize(wanted));
    if (!wanted.empty()) expect_close(got, expected.index_select(0, rows));
    expect_close(decoder.forward(sequence.narrow(0, 12, 8), {&second, 1}),
                 expected.narrow(0, 12, 8));
  }
}

}  // namespace
}  // namespace xsa::model
