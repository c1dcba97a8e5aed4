#include "xsa/model/gpt.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "tests/model/eager.h"
#include "tests/model/watched_memory.h"
#include "tests/support/model_variants.h"

namespace xsa::model {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.layers = 3;
  config.width = 24;
  config.heads = 4;
  config.head_dim = 8;
  config.context = 40;
  config.vocab_size = 31;
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

at::Tensor tokens(std::int64_t batch = 2, std::int64_t steps = 33) {
  at::manual_seed(13);
  return at::randint(31, {batch, steps}, at::kLong);
}

std::vector<AttentionTrace> traces(const Gpt& model, const at::Tensor& input) {
  std::vector<AttentionTrace> result;
  model.hidden(input, [&](const AttentionTrace& trace) { result.push_back(trace); });
  return result;
}

double relative_error(const at::Tensor& got, const at::Tensor& expected) {
  EXPECT_TRUE(got.isfinite().all().item<bool>());
  return ((got.to(at::kDouble) - expected).norm() / (expected.norm() + 1e-300)).item<double>();
}

/// Loss and every parameter's gradient against the second implementation, in double.
void expect_equals_eager(const ModelConfig& config) {
  const Gpt model = awake(config);
  const eager::Parameters expected = eager::copy(model);
  const at::Tensor input = tokens(), targets = tokens().roll({1}, {1});
  const at::Tensor loss = model.loss_sum(input, targets, 10);
  const at::Tensor expected_loss =
      at::cross_entropy_loss(eager::logits(config, expected, input).flatten(0, 1),
                             targets.flatten(), {}, at::Reduction::Sum);
  EXPECT_LT(relative_error(loss, expected_loss), 1e-6);
  loss.backward();
  expected_loss.backward();
  for (const NamedTensor& p : model.parameters())
    EXPECT_LT(relative_error(p.tensor.grad(), expected.at(p.name).grad()), 2e-5) << p.name;
}

TEST(Gpt, EqualsItsSecondImplementation) { expect_equals_eager(small()); }

TEST(Gpt, EqualsItsSecondImplementationWithStandardAttention) {
  ModelConfig config = small();
  config.attention = "standard";
  expect_equals_eager(config);
}

TEST(Gpt, EqualsItsSecondImplementationWithEveryOptionTurned) {
  ModelConfig config = small();
  config.kv_heads = 2;
  config.head_dim = 10;  // heads * head_dim is not the width
  config.exclusive_layers = "0,2";
  config.strength = 0.7;
  config.bias = true;
  config.tied_head = false;
  config.embedding_norm = false;
  config.feed_forward_width = 50;
  config.rope_base = 500;
  config.norm_eps = 1e-3;
  expect_equals_eager(config);
}

TEST(Gpt, EqualsItsSecondImplementationWithoutPositions) {
  ModelConfig config = small();
  config.position = "none";
  config.head_dim = 7;
  expect_equals_eager(config);
}

TEST(Gpt, EqualsItsSecondImplementationInTheShapeOfGpt2) {
  ModelConfig config = small();
  config.attention = "standard";
  config.position = "learned";
  config.feed_forward = "gelu_tanh";
  config.embedding_norm = false;
  config.bias = true;
  expect_equals_eager(config);
}

TEST(Gpt, EqualsItsSecondImplementationWithinAWindow) {
  ModelConfig config = small();
  config.window = 5;
  expect_equals_eager(config);
}

TEST(Gpt, EqualsItsSecondImplementationInEveryVariant) {
  ModelConfig config = small();
  config.layers = 2;
  config.strength = 0.7;
  for (const ModelConfig& variant : every_variant(config)) {
    SCOPED_TRACE(to_json(variant).dump());
    expect_equals_eager(variant);
  }
}

TEST(Gpt, LearnsItsStrengthFromTheOneThatIsSet) {
  for (const double strength : {0.0, 0.7}) {
    ModelConfig config = small();
    config.strength = strength;
    config.exclusive_layers = "0,2";
    const Gpt fixed(config, 11);
    for (const char* learned : {"head", "token"}) {
      config.learned_strength = learned;
      const Gpt model(config, 11);
      EXPECT_TRUE(at::allclose(model.logits(tokens()), fixed.logits(tokens()), 1e-5, 1e-7));
    }
  }
}

TEST(Gpt, LearnsNoStrengthInStandardLayers) {
  ModelConfig config = small();
  config.attention = "standard";
  const Gpt standard(config, 11);
  config.learned_strength = "token";
  config.strength = 0.5;
  const Gpt same(config, 11);
  ASSERT_EQ(same.parameters().size(), standard.parameters().size());
  EXPECT_TRUE(at::equal(same.logits(tokens()), standard.logits(tokens())));
}

TEST(Gpt, SumsTheCrossEntropyOfItsLogits) {
  const Gpt model = awake(small());
  const at::Tensor input = tokens();
  at::Tensor targets = tokens().roll({1}, {1});
  targets[1].narrow(0, 20, 13).fill_(-1);
  const at::Tensor mean = at::cross_entropy_loss(model.logits(input).flatten(0, 1),
                                                 targets.flatten(), {}, at::Reduction::Mean, -1);
  const at::Tensor sum = model.loss_sum(input, targets, 7);
  EXPECT_EQ(sum.dim(), 0);
  EXPECT_EQ(sum.scalar_type(), at::kFloat);
  EXPECT_NEAR(sum.item<double>() / (33 + 20), mean.item<double>(), 1e-5);
}

TEST(Gpt, StartsAtTheEntropyOfAUniformGuess) {
  const Gpt model(small(), 1);
  const double loss = model.loss_sum(tokens(), tokens().roll({1}, {1})).item<double>() / (2 * 33);
  EXPECT_NEAR(loss, std::log(31), 0.05);
}

TEST(Gpt, LeavesNothingAlongTheOwnValueInExclusiveLayers) {
  ModelConfig config = small();
  config.kv_heads = 2;
  const std::vector<AttentionTrace> seen = traces(awake(config), tokens());
  ASSERT_EQ(seen.size(), 3);
  for (const AttentionTrace& t : seen) {
    const at::Tensor v = t.v.repeat_interleave(2, 1);
    // The first token sees itself alone: its z is 0, and an angle would be noise.
    const at::Tensor cosine = (at::cosine_similarity(t.z, v, 3)).narrow(2, 1, 32);
    EXPECT_LT(cosine.abs().max().item<double>(), 1e-4) << "layer " << t.layer;
    EXPECT_GT(t.z.narrow(2, 1, 32).norm().item<double>(), 1) << "layer " << t.layer;
  }
}

TEST(Gpt, ExcludesInTheNamedLayersAlone) {
  ModelConfig config = small();
  config.exclusive_layers = "last 1";
  for (const AttentionTrace& t : traces(awake(config), tokens())) {
    EXPECT_EQ(t.strength, t.layer == 2 ? 1 : 0);
    const double along = (t.z * t.v).sum(3).abs().max().item<double>();
    if (t.layer == 2) {
      EXPECT_LT(along, 1e-4);
    } else {
      EXPECT_GT(along, 0.1);
    }
  }
}

TEST(Gpt, ShowsItsObserverEachLayersAttentionAsItWas) {
  ModelConfig config = small();
  config.kv_heads = 2;
  const Gpt model = awake(config);
  const std::vector<AttentionTrace> seen = traces(model, tokens());
  ASSERT_EQ(seen.size(), 3);
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    const AttentionTrace& t = seen[static_cast<std::size_t>(layer)];
    EXPECT_EQ(t.layer, layer);
    EXPECT_EQ(t.q.sizes(), (std::vector<std::int64_t>{2, 4, 33, 8}));
    EXPECT_EQ(t.v.sizes(), (std::vector<std::int64_t>{2, 2, 33, 8}));
    EXPECT_EQ(t.z.sizes(), t.q.sizes());
    EXPECT_EQ(t.c.sizes(), t.lse.sizes());
    const at::Tensor scores =
        at::matmul(t.q, t.k.repeat_interleave(2, 1).transpose(2, 3)) / std::sqrt(8.0);
    const at::Tensor future = at::ones({33, 33}, at::kBool).triu(1);
    EXPECT_TRUE(
        at::allclose(t.lse, scores.masked_fill(future, -INFINITY).logsumexp(3), 1e-5, 1e-5));
  }
}

TEST(Gpt, ShowsItsObserverSinksAndStrengths) {
  const ModelConfig config = all_variants(small());
  const Gpt model = awake(config);
  for (const AttentionTrace& t : traces(model, tokens())) {
    EXPECT_EQ(t.num_sink_keys, 3);
    EXPECT_EQ(t.k.sizes(), (std::vector<std::int64_t>{2, 2, 3 + 33, 8}));
    ASSERT_EQ(t.learned_strength.sizes(), t.c.sizes());
    ASSERT_EQ(t.sink_logits.sizes(), (std::vector<std::int64_t>{4}));
    const at::Tensor sinks =
        eager::copy(model).at(cat("transformer.h.", t.layer, ".attn.sink_key")).to(at::kFloat);
    EXPECT_TRUE(at::equal(t.k.narrow(2, 0, 3)[1], sinks));
    const at::Tensor k = t.k.repeat_interleave(2, 1), v = t.v.repeat_interleave(2, 1);
    const at::Tensor all = at::ones({33, 33}, at::kBool);
    const at::Tensor hidden =
        at::cat({at::zeros({33, 3}, at::kBool), all.triu(1) | all.tril(-config.window)}, 1);
    const at::Tensor scores =
        (at::matmul(t.q, k.transpose(2, 3)) / std::sqrt(8.0)).masked_fill(hidden, -INFINITY);
    const at::Tensor lse = scores.logsumexp(3).logaddexp(t.sink_logits.view({1, 4, 1}));
    EXPECT_TRUE(at::allclose(t.lse, lse, 1e-5, 1e-5));
    const at::Tensor y = at::matmul(at::exp(scores - lse.unsqueeze(3)), v);
    const at::Tensor z = y - (t.learned_strength * t.c).unsqueeze(3) * v.narrow(2, 3, 33);
    EXPECT_TRUE(at::allclose(t.z, z, 1e-4, 1e-5));
  }
}

TEST(Gpt, IsStandardToTheBitAtStrengthZero) {
  ModelConfig config = small();
  config.strength = 0;
  const Gpt zero = awake(config);
  config.strength = 1;
  config.attention = "standard";
  const Gpt standard = awake(config);
  config.attention = "exclusive";
  const Gpt exclusive = awake(config);
  const at::Tensor input = tokens(), targets = tokens().roll({1}, {1});
  for (const Gpt* model : {&zero, &standard}) model->loss_sum(input, targets).backward();
  EXPECT_TRUE(at::equal(zero.logits(input), standard.logits(input)));
  for (std::size_t i = 0; i < zero.parameters().size(); ++i)
    EXPECT_TRUE(
        at::equal(zero.parameters()[i].tensor.grad(), standard.parameters()[i].tensor.grad()));
  EXPECT_FALSE(at::allclose(exclusive.logits(input), standard.logits(input), 1e-2, 1e-2));
}

TEST(Gpt, LetsNoLaterTokenChangeWhatCameBefore) {
  const Gpt model = awake(small());
  const at::Tensor input = tokens();
  at::Tensor other = input.clone();
  other.narrow(1, 20, 13).add_(1).remainder_(31);
  const at::Tensor a = model.logits(input), b = model.logits(other);
  EXPECT_TRUE(at::equal(a.narrow(1, 0, 20), b.narrow(1, 0, 20)));
  EXPECT_FALSE(at::allclose(a.narrow(1, 20, 13), b.narrow(1, 20, 13), 1e-2, 1e-2));
}

TEST(Gpt, HasTheSameBitsEachTime) {
  const at::Tensor input = tokens(), targets = tokens().roll({1}, {1});
  const Gpt a = awake(small()), b = awake(small());
  const at::Tensor loss_a = a.loss_sum(input, targets), loss_b = b.loss_sum(input, targets);
  EXPECT_TRUE(at::equal(loss_a, loss_b));
  loss_a.backward();
  loss_b.backward();
  for (std::size_t i = 0; i < a.parameters().size(); ++i)
    EXPECT_TRUE(at::equal(a.parameters()[i].tensor.grad(), b.parameters()[i].tensor.grad()));
}

TEST(Gpt, KeepsNothingForBackwardInEvaluation) {
  const Gpt model = awake(small());
  const at::Tensor with_grad = model.loss_sum(tokens(), tokens());
  const at::NoGradGuard guard;
  const at::Tensor loss = model.loss_sum(tokens(), tokens());
  EXPECT_FALSE(loss.requires_grad());
  EXPECT_TRUE(at::equal(loss, with_grad));
}

TEST(Gpt, SharesItsWeightsWithItsCopies) {
  const Gpt model = awake(small());
  const Gpt copy = model;
  const at::NoGradGuard guard;
  for (const NamedTensor& p : model.parameters()) p.tensor.mul_(0.5);
  EXPECT_TRUE(at::equal(model.logits(tokens()), copy.logits(tokens())));
}

TEST(Gpt, HoldsAChunkOfLogitsInTraining) {
  ModelConfig config = small();
  config.vocab_size = 20'000;
  const Gpt model(config, 1);
  const std::int64_t embedding_bytes = 20'000 * 24 * 4, all_logits_bytes = 2 * 33 * 20'000 * 4;
  const test::PeakMemory peak;
  model.loss_sum(tokens(), tokens(), 2).backward();
  // Two gradients of the tied embedding, from both of its uses; activations are small.
  EXPECT_LT(peak.bytes(), 2 * embedding_bytes + all_logits_bytes / 4);
}

/// Rows of 33 tokens in documents of these lengths; a border at each row's end.
const std::vector<std::vector<std::int64_t>> kDocuments = {{1, 12, 20}, {33}, {5, 1, 1, 26}};

at::Tensor cu_seqlens() {
  std::vector<std::int32_t> ends{0};
  for (const auto& row : kDocuments)
    for (const std::int64_t length : row)
      ends.push_back(ends.back() + static_cast<std::int32_t>(length));
  return at::tensor(ends, at::kInt);
}

/// The loss and the gradients of packed documents against those of each document by itself.
void expect_packed_equals_one_by_one(const ModelConfig& config) {
  const Gpt packed = awake(config), alone = awake(config);
  const at::Tensor input = tokens(3), targets = tokens(3).roll({1}, {1});
  const at::Tensor loss = packed.loss_sum(input, targets, 10, cu_seqlens());
  loss.backward();
  double expected_loss = 0;
  for (std::int64_t row = 0, begin = 0; row < 3; ++row, begin = 0) {
    for (const std::int64_t length : kDocuments[static_cast<std::size_t>(row)]) {
      const auto document = [&](const at::Tensor& all) {
        return all.narrow(0, row, 1).narrow(1, begin, length);
      };
      const at::Tensor part = alone.loss_sum(document(input), document(targets), 10);
      part.backward();
      expected_loss += part.item<double>();
      begin += length;
    }
  }
  EXPECT_NEAR(loss.item<double>(), expected_loss, 1e-5 * expected_loss);
  for (std::size_t i = 0; i < packed.parameters().size(); ++i)
    EXPECT_LT(relative_error(packed.parameters()[i].tensor.grad(),
                             alone.parameters()[i].tensor.grad().to(at::kDouble)),
              2e-5)
        << packed.parameters()[i].name;
}

TEST(Gpt, GivesPackedDocumentsWhatItGivesEachAlone) { expect_packed_equals_one_by_one(small()); }

TEST(Gpt, GivesPackedDocumentsWhatItGivesEachAloneWithEveryOptionTurned) {
  ModelConfig config = small();
  config.kv_heads = 2;
  config.strength = 0.7;
  config.bias = true;
  config.position = "learned";
  config.window = 9;
  expect_packed_equals_one_by_one(config);
}

TEST(Gpt, GivesPackedDocumentsWhatItGivesEachAloneWithSinksAndLearnedStrengths) {
  ModelConfig config = small();
  config.layers = 2;
  expect_packed_equals_one_by_one(all_variants(config));
  config.sink_tokens = 2;
  config.learned_strength = "head";
  expect_packed_equals_one_by_one(config);
}

TEST(Gpt, LetsNoDocumentChangeAnotherInItsRow) {
  const Gpt model = awake(small());
  const at::Tensor input = tokens(3);
  at::Tensor other = input.clone();
  other[0].narrow(0, 1, 12).add_(1).remainder_(31);  // the first row's second document
  const at::Tensor a = model.hidden(input, {}, cu_seqlens()).flatten(0, 1);
  const at::Tensor b = model.hidden(other, {}, cu_seqlens()).flatten(0, 1);
  EXPECT_TRUE(at::equal(a.narrow(0, 0, 1), b.narrow(0, 0, 1)));
  EXPECT_TRUE(at::equal(a.narrow(0, 13, 86), b.narrow(0, 13, 86)));
  EXPECT_FALSE(at::allclose(a.narrow(0, 1, 12), b.narrow(0, 1, 12), 1e-2, 1e-2));
}

TEST(Gpt, TakesRowsWithoutDocumentsAsRowsOfOneDocument) {
  const Gpt model = awake(small());
  const at::Tensor rows = at::tensor(std::vector<std::int32_t>{0, 33, 66, 99}, at::kInt);
  EXPECT_TRUE(at::allclose(model.hidden(tokens(3), {}, rows), model.hidden(tokens(3)), 1e-5, 1e-6));
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Gpt, RefusesTokensThatDoNotFit) {
  using testing::AllOf;
  using testing::HasSubstr;
  const Gpt model(small(), 1);
  EXPECT_THAT(refusal([&] { model.hidden(tokens(1, 41)); }),
              AllOf(HasSubstr("up to the context, 40, got [1, 41]"), HasSubstr("model.context")));
  EXPECT_THAT(refusal([&] { model.hidden(tokens()[0]); }), HasSubstr("got [33]"));
  EXPECT_THAT(refusal([&] { model.hidden(tokens().to(at::kInt)); }), HasSubstr("type Int"));
  EXPECT_THAT(refusal([&] { model.hidden(tokens() + 10); }),
              AllOf(HasSubstr("in [0, 31), the vocabulary"), HasSubstr("tokenizer")));
  EXPECT_THAT(refusal([&] { model.hidden(tokens() - 31); }), HasSubstr("got [-"));
  EXPECT_THAT(refusal([&] { model.loss_sum(tokens(), tokens().narrow(1, 0, 9)); }),
              HasSubstr("got targets [2, 9]"));
  const auto documents = [&](const std::vector<std::int32_t>& ends) {
    return refusal([&] { model.hidden(tokens(), {}, at::tensor(ends, at::kInt)); });
  };
  EXPECT_THAT(documents({0, 40, 66}), HasSubstr("every row border in cu_seqlens, got none at 33"));
  EXPECT_THAT(documents({0, 33}), HasSubstr("got none at 66"));
  EXPECT_THAT(documents({33, 66}), HasSubstr("got none at 0"));
  EXPECT_THAT(documents({0, 33, 20, 66}), HasSubstr("rising order"));
  EXPECT_THAT(documents({0}), HasSubstr("[documents + 1]"));
  EXPECT_THAT(refusal([&] { model.hidden(tokens(), {}, at::zeros({3})); }), HasSubstr("type Int"));
  ModelConfig impossible = small();
  impossible.kv_heads = 3;
  EXPECT_THAT(refusal([&] { Gpt(impossible, 1); }), HasSubstr("model.kv_heads"));
}

TEST(Gpt, TakesNoSequencesAndShortOnes) {
  const Gpt model = awake(small());
  EXPECT_EQ(model.logits(tokens(2, 1)).sizes(), (std::vector<std::int64_t>{2, 1, 31}));
  EXPECT_EQ(model.logits(tokens(1, 40)).sizes(), (std::vector<std::int64_t>{1, 40, 31}));
}

}  // namespace
}  // namespace xsa::model
