#include "xsa/load/gpt2.h"

#include <gmock/gmock.h>

#include "tests/load/folder.h"
#include "xsa/base/file.h"
#include "xsa/checkpoint/checkpoint.h"
#include "xsa/load/load.h"
#include "xsa/text/byte_alphabet.h"

namespace xsa::load {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

at::Tensor tokens() {
  at::manual_seed(6);
  return at::randint(257, {30}, at::kLong);
}

at::Tensor logits(const TempFolder& folder) {
  const at::NoGradGuard guard;
  return load(folder.path()).model.logits(tokens().unsqueeze(0)).squeeze(0);
}

void expect_equals(const at::Tensor& got, const at::Tensor& expected) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_LT((got - expected).abs().max().item<double>(),
            1e-5 * expected.abs().max().item<double>());
}

/// A folder of that configuration has its own mathematics' logits.
void expect_honoured(const Json& config, Tensors tensors) {
  const TempFolder folder;
  write_folder(folder.path(), config, tensors);
  expect_equals(logits(folder), expected_logits(config, tensors, tokens()));
}

Json with(const char* key, const Json& value) {
  Json config = small_config();
  config[key] = value;
  return config;
}

TEST(Gpt2, EqualsItsDefinition) { expect_honoured(small_config(), random_tensors(small_config())); }

TEST(Gpt2, HonoursEverySettingThatChangesItsMathematics) {
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, Json>>{{"n_inner", 40},
                                                 {"n_inner", nullptr},
                                                 {"activation_function", "gelu"},
                                                 {"activation_function", "gelu_pytorch_tanh"},
                                                 {"scale_attn_weights", false},
                                                 {"scale_attn_by_inverse_layer_idx", true},
                                                 {"reorder_and_upcast_attn", true},
                                                 {"layer_norm_epsilon", 0.1},
                                                 {"n_head", 8}}) {
    SCOPED_TRACE(cat(key, " ", value.dump()));
    Json config = with(key, value);
    if (value.is_null()) config.erase(key);
    expect_honoured(config, random_tensors(config));
  }
}

TEST(Gpt2, TakesAHeadOfItsOwn) {
  const Json config = with("tie_word_embeddings", false);
  Tensors tensors = random_tensors(config);
  tensors["lm_head.weight"] = at::randn({257, 24});
  expect_honoured(config, tensors);
}

TEST(Gpt2, TakesARepeatedHeadOnlyIfItIsTheEmbedding) {
  Tensors tensors = random_tensors(small_config());
  tensors["lm_head.weight"] = tensors["transformer.wte.weight"];
  expect_honoured(small_config(), tensors);
  tensors["lm_head.weight"] = at::randn({257, 24});
  const TempFolder folder;
  write_folder(folder.path(), small_config(), tensors);
  EXPECT_THAT(error_of([&] { load(folder.path()); }),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("tie_word_embeddings")));
}

TEST(Gpt2, ReadsEveryFloatingType) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    Tensors tensors = random_tensors(small_config());
    for (auto& [name, tensor] : tensors) tensor = tensor.to(type);
    expect_honoured(small_config(), tensors);
  }
}

TEST(Gpt2, ReadsNamesWithoutTheirPrefixAndSkipsMasks) {
  const Tensors tensors = random_tensors(small_config());
  Tensors bare;
  for (const auto& [name, tensor] : tensors) bare[name.substr(12)] = tensor;
  bare["h.0.attn.bias"] = at::ones({1, 1, 32, 32}, at::kByte);
  bare["h.1.attn.masked_bias"] = at::full({}, -1e4);
  const TempFolder folder;
  write_folder(folder.path(), small_config(), bare);
  expect_equals(logits(folder), expected_logits(small_config(), tensors, tokens()));
}

/// The tensors in two files with an index.
void write_shards(const TempFolder& folder, const Tensors& tensors) {
  write_json_file(folder / "config.json", small_config());
  Json map = Json::object();
  Tensors parts[2];
  for (const auto& [name, tensor] : tensors) {
    const bool second = map.size() % 2 == 1;
    parts[second][name] = tensor;
    map[name] = second ? "b.safetensors" : "a.safetensors";
  }
  write_tensors(folder / "a.safetensors", parts[0]);
  write_tensors(folder / "b.safetensors", parts[1]);
  write_json_file(folder / "model.safetensors.index.json", {{"weight_map", map}});
}

TEST(Gpt2, ReadsShards) {
  const Tensors tensors = random_tensors(small_config());
  const TempFolder folder;
  write_shards(folder, tensors);
  expect_equals(logits(folder), expected_logits(small_config(), tensors, tokens()));
}

TEST(Gpt2, RefusesAnIndexThatLies) {
  const TempFolder folder;
  write_shards(folder, random_tensors(small_config()));
  const auto path = folder / "model.safetensors.index.json";
  const Json index = read_json_file(path);
  const auto error = [&](const Json& file, const char* tensor = "transformer.wte.weight") {
    Json changed = index;
    changed["weight_map"][tensor] = file;
    write_json_file(path, changed);
    return error_of([&] { load(folder.path()); });
  };
  EXPECT_THAT(error("../a.safetensors"), HasSubstr("in its own folder"));
  EXPECT_THAT(error(".."), HasSubstr("in its own folder"));
  EXPECT_THAT(error(7), HasSubstr("expected a file's name"));
  EXPECT_THAT(error("c.safetensors"), HasSubstr("c.safetensors"));
  EXPECT_THAT(error("a.safetensors", "transformer.more"), HasSubstr("transformer.more"));
  write_json_file(path, Json::object());
  EXPECT_THAT(error_of([&] { load(folder.path()); }), HasSubstr("weight_map"));
}

std::string refusal(const Json& config, const Tensors& tensors = random_tensors(small_config())) {
  const TempFolder folder;
  write_folder(folder.path(), config, tensors);
  return error_of([&] { load(folder.path()); });
}

TEST(Gpt2, RefusesSettingsThatItDoesNotKnow) {
  EXPECT_THAT(refusal(with("model_type", "llama")), HasSubstr("only gpt2 is known, got 'llama'"));
  EXPECT_THAT(refusal(with("activation_function", "relu")),
              AllOf(HasSubstr("activation_function"), HasSubstr("got 'relu'")));
  EXPECT_THAT(refusal(with("add_cross_attention", true)), HasSubstr("add_cross_attention"));
  EXPECT_THAT(refusal(with("quantization_config", Json::object())), HasSubstr("quantization"));
  EXPECT_THAT(refusal(with("n_head", 5)), HasSubstr("a divisor of n_embd = 24, got 5"));
  EXPECT_THAT(refusal(with("n_head", 0)), HasSubstr("n_head: expected 1 to"));
  EXPECT_THAT(refusal(with("n_layer", "two")), HasSubstr("n_layer"));
  EXPECT_THAT(refusal(with("n_layer", 1e30)), HasSubstr("n_layer"));
  EXPECT_THAT(refusal(with("layer_norm_epsilon", -1)), HasSubstr("norm_eps"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("expected an object"));
}

TEST(Gpt2, NamesTheTensorThatDoesNotFit) {
  const Tensors whole = random_tensors(small_config());
  Tensors tensors = whole;
  tensors.erase("transformer.h.1.ln_2.bias");
  EXPECT_THAT(refusal(small_config(), tensors),
              AllOf(HasSubstr("'transformer.h.1.ln_2.bias'"), HasSubstr("missing")));
  tensors = whole;
  tensors["transformer.h.1.mlp.c_fc.weight"] = at::zeros({96, 24});
  EXPECT_THAT(refusal(small_config(), tensors),
              AllOf(HasSubstr("h.1.mlp.c_fc.weight"), HasSubstr("[24,96]"), HasSubstr("[96,24]")));
  tensors = whole;
  tensors["score.weight"] = at::zeros({2, 24});
  EXPECT_THAT(refusal(small_config(), tensors), HasSubstr("score.weight"));
  tensors = whole;
  tensors["wte.weight"] = whole.at("transformer.wte.weight");
  EXPECT_THAT(refusal(small_config(), tensors), HasSubstr("twice"));
  tensors = whole;
  tensors["transformer.ln_f.bias"][3] = NAN;
  EXPECT_THAT(refusal(small_config(), tensors), AllOf(HasSubstr("ln_f.bias"), HasSubstr("NaN")));
  tensors = whole;
  tensors["transformer.ln_f.bias"] = at::zeros({24}, at::kByte);
  EXPECT_THAT(refusal(small_config(), tensors), AllOf(HasSubstr("ln_f.bias"), HasSubstr("U8")));
}

TEST(Gpt2, SaysHowToConvertAPickle) {
  const TempFolder folder;
  write_json_file(folder / "config.json", small_config());
  EXPECT_THAT(error_of([&] { load(folder.path()); }), HasSubstr("model.safetensors.index.json"));
  folder.write("pytorch_model.bin", "");
  EXPECT_THAT(error_of([&] { load(folder.path()); }), HasSubstr("save_pretrained"));
}

TEST(Load, NamesTheRunsOfAFolderThatIsNone) {
  const TempFolder folder;
  for (const char* const run : {"demo/standard-seed1", "demo/exclusive-seed1", "first"})
    for (const char* const file : {"recipe.json", "metrics.jsonl"})
      atomic_write(folder / run / file, "{}");
  EXPECT_THAT(
      error_of<UsageError>([&] { load(folder.path()); }),
      AllOf(HasSubstr("expected a run"), HasSubstr((folder / "demo/exclusive-seed1").string()),
            HasSubstr((folder / "first").string())));
  EXPECT_THAT(error_of<UsageError>([&] { load(folder / "demo"); }),
              HasSubstr("demo/standard-seed1"));
}

TEST(Load, RefusesWhatIsNoFolder) {
  EXPECT_THAT(error_of<UsageError>([&] { load("no-such-folder"); }),
              AllOf(HasSubstr("no-such-folder"), HasSubstr("got no folder")));
  const TempFolder folder;
  EXPECT_THAT(error_of<UsageError>([&] { load(folder.path()); }),
              AllOf(HasSubstr("a run"), HasSubstr("a checkpoint"), HasSubstr("config.json")));
}

/// A checkpoint of the model, with this recipe.
void save(const TempFolder& folder, const model::Gpt& model, const Json& recipe) {
  checkpoint::Contents contents;
  contents.recipe = recipe;
  contents.state = Json::object();
  for (const model::NamedTensor& p : model.parameters())
    contents.model.push_back(
        {p.name,
         "F32",
         p.tensor.sizes().vec(),
         {static_cast<const std::byte*>(p.tensor.const_data_ptr()), p.tensor.nbytes()}});
  checkpoint::save(folder / "checkpoints", contents, 0);
}

/// What tokenizer_of warns of, "" where it does not.
std::string warning_of(const Loaded& loaded, const std::string& name = "") {
  std::string warned;
  tokenizer_of(loaded, name, [&](const std::string& warning) { warned += warning; });
  return warned;
}

TEST(Load, TakesARunAndItsTokenizer) {
  model::ModelConfig config;
  config.vocab_size = 257, config.layers = 1, config.width = 16;
  const model::Gpt model(config, 3);
  const TempFolder folder;
  save(folder, model, {{"model", to_json(config)}, {"data", {{"tokenizer", "byte"}}}});
  for (const auto& path : {folder.path(), folder / "checkpoints/step-000000"}) {
    const Loaded loaded = load(path);
    EXPECT_TRUE(
        at::equal(loaded.model.logits(tokens().unsqueeze(0)), model.logits(tokens().unsqueeze(0))));
    EXPECT_EQ(tokenizer_of(loaded, "", {})->name(), "byte");
  }
}

TEST(Load, RefusesACheckpointThatIsNotItsRecipes) {
  model::ModelConfig config;
  config.vocab_size = 257, config.layers = 1, config.width = 16;
  const model::Gpt model(config, 3);
  config.width = 32;
  const TempFolder folder;
  save(folder, model, {{"model", to_json(config)}});
  EXPECT_THAT(error_of([&] { load(folder.path()); }),
              AllOf(HasSubstr("transformer.wte.weight"), HasSubstr("[257,32]")));
}

TEST(Load, SaysWhoseSettingItDoesNotKnow) {
  model::ModelConfig config;
  config.vocab_size = 257, config.layers = 1, config.width = 16;
  const model::Gpt model(config, 3);
  for (const char* const key : {"invented_later", "heads"}) {
    Json recipe = {{"model", to_json(config)}};
    recipe["model"][key] = 0;
    const TempFolder folder;
    save(folder, model, recipe);
    EXPECT_THAT(error_of([&] { load(folder.path()); }),
                AllOf(HasSubstr("step-000000/recipe.json: model"), HasSubstr(key),
                      HasSubstr("another release of xsa")));
  }
}

/// As where an older release's settings stand beside weights that have sinks.
TEST(Load, RefusesACheckpointWithMoreThanItsRecipesModel) {
  model::ModelConfig config;
  config.vocab_size = 257, config.layers = 1, config.width = 16, config.sink_tokens = 2;
  const model::Gpt model(config, 3);
  Json recipe = {{"model", to_json(config)}};
  const TempFolder whole, folder;
  save(whole, model, recipe);
  EXPECT_NO_THROW(load(whole.path()));
  recipe["model"].erase("sink_tokens");
  save(folder, model, recipe);
  EXPECT_THAT(
      error_of([&] { load(folder.path()); }),
      AllOf(HasSubstr("step-000000"), HasSubstr("got 'transformer.h.0.attn.sink_key' too")));
}

TEST(Load, TakesOnlyATokenizerThatTheModelKnows) {
  const TempFolder folder;
  write_folder(folder.path(), small_config(), random_tensors(small_config()));
  const Loaded loaded = load(folder.path());
  EXPECT_EQ(warning_of(loaded, "byte"), "") << "none is known to be its own";
  EXPECT_THAT(error_of<UsageError>([&] { warning_of(loaded); }), HasSubstr("--tokenizer"));
  EXPECT_THAT(error_of<UsageError>([&] { warning_of(loaded, "bite"); }),
              HasSubstr("did you mean 'byte'?"));
  model::ModelConfig config;
  config.vocab_size = 200;
  EXPECT_THAT(error_of<UsageError>([&] { warning_of({model::Gpt(config, 1), "byte", {}, {}}); }),
              HasSubstr("has 257 tokens, the model's embedding 200"));
}

model::ModelConfig of_gpt2s_vocabulary() {
  model::ModelConfig config;
  config.layers = 1, config.width = 8, config.heads = 1, config.head_dim = 8;
  config.vocab_size = 50257;
  return config;
}

TEST(Load, WarnsOfATokenizerThatIsNotTheModelsOwn) {
  const Loaded loaded{model::Gpt(of_gpt2s_vocabulary(), 1), "gpt2", {}, {}};
  EXPECT_EQ(warning_of(loaded), "");
  EXPECT_EQ(warning_of(loaded, "gpt2"), "");
  EXPECT_THAT(warning_of(loaded, "byte"), HasSubstr("'byte' is not the model's own, 'gpt2'"));
}

/// 256 bytes, one merge and an end: ids 0 to 257.
void write_vocabulary(const TempFolder& folder, bool one_file) {
  const text::ByteAlphabet& alphabet = text::byte_alphabet();
  Json ids = {{"<end>", 0}};
  for (int byte = 0; byte < 256; ++byte) {
    const char each = static_cast<char>(byte);
    ids[alphabet.written({&each, 1})] = 1 + byte;
  }
  ids["he"] = 257;
  folder.write("tokenizer_config.json", R"({"eos_token": "<end>"})");
  if (one_file) {
    folder.write("tokenizer.json",
                 Json({{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                       {"model", {{"type", "BPE"}, {"vocab", ids}, {"merges", {"h e"}}}}})
                     .dump());
  } else {
    folder.write("vocab.json", ids.dump());
    folder.write("merges.txt", "#version: 0.2\nh e\n");
  }
}

TEST(Load, TakesAFoldersOwnVocabulary) {
  Json config = small_config();
  config["vocab_size"] = 258;
  for (const bool one_file : {false, true}) {
    const TempFolder folder;
    write_folder(folder.path(), config, random_tensors(config));
    EXPECT_EQ(vocabulary_folder(folder.path()), "");
    write_vocabulary(folder, one_file);
    EXPECT_EQ(vocabulary_folder(folder.path()), folder.path());
    const Loaded loaded = load(folder.path());
    std::vector<text::Token> ids;
    tokenizer_of(loaded, "", {})->encode("he", ids);
    EXPECT_THAT(ids, ::testing::ElementsAre(257));
    EXPECT_EQ(warning_of(loaded), "");
    EXPECT_EQ(warning_of(loaded, folder.path().string()), "") << "named, and its own";
    EXPECT_THAT(warning_of(loaded, "byte"), HasSubstr("'byte' is not the model's own"));
  }
}

TEST(Load, RefusesAFoldersVocabularyThatCannotBeRead) {
  Json config = small_config();
  config["vocab_size"] = 50257, config["n_embd"] = 6;
  const Tensors tensors = random_tensors(config);
  for (const char* file : {"merges.txt", "tokenizer.json"}) {
    const TempFolder folder;
    write_folder(folder.path(), config, tensors);
    EXPECT_EQ(tokenizer_of(load(folder.path()), "", {})->name(), "gpt2") << "the installed one";
    folder.write(file, R"({"model": {"type": "BPE", "merges": ["h e"], "vocab": {"he": 0}}})");
    const std::string refused = error_of([&] { warning_of(load(folder.path())); });
    EXPECT_THAT(refused, HasSubstr(folder.path().string()));
    EXPECT_THAT(refused, ::testing::Not(HasSubstr("pip install")));
    EXPECT_EQ(error_of([&] { tokenizer_of(load(folder.path()), "gpt2", [](const auto&) {}); }), "");
  }
}

TEST(Load, NamesTokenizersThatFitWhereNoneIsKnown) {
  const auto refused = [](std::int64_t rows) {
    model::ModelConfig config = of_gpt2s_vocabulary();
    config.vocab_size = rows;
    return error_of<UsageError>([&] { warning_of({model::Gpt(config, 1), "", {}, {}}); });
  };
  EXPECT_THAT(refused(200), HasSubstr("--tokenizer: a folder"));
  EXPECT_THAT(refused(1000), HasSubstr("--tokenizer: byte or a folder"));
  EXPECT_THAT(refused(60'000), HasSubstr("--tokenizer: gpt2, byte or a folder"));
}

}  // namespace
}  // namespace xsa::load
