#include "xsa/eval/evaluate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/signals.h"
#include "xsa/eval/journal.h"
#include "xsa/tasks/load.h"

namespace xsa::eval {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;

constexpr const char* kPiqa =
    R"({"goal": "To stop a door,", "sol1": "use a wedge.", "sol2": "use a wedding.", "label": 0}
{"goal": "To boil an egg,", "sol1": "heat water.", "sol2": "freeze it.", "label": 0}
{"goal": "To read,", "sol1": "shut the book.", "sol2": "open the book.", "label": 1}
)";

model::Gpt made(double spread = 0.3) {
  model::ModelConfig config;
  config.layers = 2;
  config.width = 16;
  config.heads = 2;
  config.head_dim = 8;
  config.context = 40;
  config.vocab_size = 257;
  model::Gpt model(config, 11);
  const at::NoGradGuard guard;
  at::set_num_threads(1);
  at::manual_seed(12);
  for (const model::NamedTensor& p : model.parameters())
    p.tensor.add_(at::randn(p.tensor.sizes()), spread);
  return model;
}

struct Case {
  TempFolder folder;
  std::unique_ptr<text::Tokenizer> tokenizer = text::make_tokenizer("byte");
  model::Gpt model = made();
  Questions questions;
  EvaluateOptions options;

  Case() {
    options.progress = false;
    options.output = folder / "out";
  }
  void ask_piqa(const std::string& records = kPiqa) {
    folder.write("piqa.jsonl", records);
    const tasks::DataPlaces places = {.folder = folder.path()};
    questions.tasks.push_back(tasks::load_samples(tasks::find_task("piqa"), places, *tokenizer, {},
                                                  [](const std::string&) {}));
  }
  void ask_text(const std::string& text, const std::string& name = "text.txt") {
    const std::vector<std::string> paths = {folder.write(name, text).string()};
    for (TextSamples& found : load_texts(paths, *tokenizer, model.config().context))
      questions.texts.push_back(std::move(found));
  }
  Json run() const { return evaluate(model, *tokenizer, questions, options); }
  std::string error() const {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST(Evaluate, WritesResultsSamplesAndScores) {
  Case c;
  c.ask_piqa();
  const Json results = c.run();
  EXPECT_EQ(results, read_json_file(c.options.output / "results.json"));
  const Json& piqa = results.at("results").at("piqa");
  EXPECT_EQ(piqa.at("sample_len"), 3);
  EXPECT_TRUE(piqa.at("acc,none").is_number());
  EXPECT_TRUE(piqa.at("acc_norm_stderr,none").is_number());
  const std::string samples = read_file(c.options.output / "samples_piqa.jsonl");
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 3);
  const std::string scores = read_file(c.options.output / "scores.jsonl");
  EXPECT_EQ(std::count(scores.begin(), scores.end(), '\n'), 1 + 6);
}

TEST(Evaluate, BitsPerByteOfATextAreThoseOfItsWindows) {
  Case c;
  std::string text;
  for (int i = 0; i < 9; ++i) text += "It was " + std::to_string(i) + " o'clock.\n";
  c.ask_text(text);
  const Json row = c.run().at("results").at("text.txt");

  // The windows once more, by hand: 40 bytes each, the last one moved back to be full.
  const at::NoGradGuard guard;
  std::vector<std::int64_t> ids = {256};
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  double nats = 0;
  for (std::int64_t begin = 0; begin < std::ssize(text); begin += 40) {
    const std::int64_t end = std::min<std::int64_t>(begin + 40, std::ssize(text));
    const at::Tensor seen = at::tensor(ids, at::kLong).slice(0, end - 40, end);
    const at::Tensor log_p =
        at::log_softmax(c.model.logits(seen.unsqueeze(0)).squeeze(0), 1, at::kDouble);
    for (std::int64_t i = begin; i < end; ++i)
      nats -= log_p[i - (end - 40)][ids[static_cast<std::size_t>(i + 1)]].item<double>();
  }
  const double bytes = static_cast<double>(text.size());
  EXPECT_NEAR(row.at("bits_per_byte,none").get<double>(), nats / bytes / std::numbers::ln2, 1e-6);
  EXPECT_NEAR(row.at("byte_perplexity,none").get<double>(), std::exp(nats / bytes), 1e-4);
  EXPECT_EQ(row.at("bits_per_byte_stderr,none"), "N/A");
}

TEST(Evaluate, AFinishedEvaluationComputesNothingAgain) {
  Case c;
  c.ask_piqa();
  c.ask_text("Once upon a time there was a text.");
  const Json first = c.run(), second = c.run();
  EXPECT_GT(first.at("xsa").at("tokens_computed"), 0);
  EXPECT_EQ(second.at("xsa").at("tokens_computed"), 0);
  EXPECT_EQ(first.at("results"), second.at("results"));
}

TEST(Evaluate, ContinuesAfterAnyScore) {
  Case c;
  c.ask_piqa();
  const Json whole = c.run();
  const std::string scores = read_file(c.options.output / "scores.jsonl");
  for (std::size_t cut = 1; cut < scores.size(); cut += 7) {
    std::ofstream(c.options.output / "scores.jsonl", std::ios::binary) << scores.substr(0, cut);
    EXPECT_EQ(c.run().at("results"), whole.at("results")) << "cut to " << cut << " bytes";
  }
}

TEST(Evaluate, KeptScoresOfAnotherModelOrOtherRecordsAreRefused) {
  Case c;
  c.ask_piqa();
  c.run();
  const model::Gpt model = c.model;
  c.model = made(0.31);
  EXPECT_THAT(c.error(), HasSubstr("another evaluation: model ("));
  c.model = model;
  EXPECT_EQ(c.error(), "");
  c.questions = {};
  c.ask_piqa(std::string(kPiqa).replace(10, 1, "D"));
  EXPECT_THAT(c.error(), HasSubstr("another evaluation: tokens ("));
  c.ask_text("more");
  EXPECT_THAT(c.error(), HasSubstr("of ([\"piqa\"] there, [\"piqa\",\"text.txt\"] now)"));
}

TEST(Evaluate, ASignalStopsAndTheSameCallContinues) {
  Case c;
  c.ask_piqa();
  install_stop_handlers();
  ::raise(SIGINT);
  EXPECT_THROW(c.run(), Interrupted);
  clear_stop_signal();
  EXPECT_EQ(c.run().at("results").at("piqa").at("sample_len"), 3);
}

TEST(Evaluate, FiguresForTrainingAreThoseOfTheResults) {
  Case c;
  c.ask_piqa();
  c.ask_text("Once upon a time.");
  const Json results = c.run().at("results");
  const std::optional<Json> figures = eval::figures(c.model, *c.tokenizer, c.questions);
  ASSERT_TRUE(figures.has_value());
  EXPECT_EQ(figures->at("piqa").size(), 2u);
  EXPECT_EQ(figures->at("piqa").at("acc"), results.at("piqa").at("acc,none"));
  EXPECT_EQ(figures->at("piqa").at("acc_norm"), results.at("piqa").at("acc_norm,none"));
  EXPECT_EQ(figures->at("text.txt").size(), 3u);
  install_stop_handlers();
  ::raise(SIGINT);
  EXPECT_FALSE(eval::figures(c.model, *c.tokenizer, c.questions).has_value());
  clear_stop_signal();
}

TEST(Evaluate, AScoreThatIsNotFiniteNamesItsRecord) {
  Case c;
  c.ask_piqa();
  const at::NoGradGuard guard;
  for (const model::NamedTensor& p : c.model.parameters())
    if (p.name == "transformer.wte.weight")
      p.tensor[static_cast<std::int64_t>('z')].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(c.error(), HasSubstr("piqa, record 0, choice 0: the model gives a log-likelihood"));
}

TEST(Evaluate, AContinuationLongerThanTheContextNamesItsRecord) {
  Case c;
  c.ask_piqa(std::string(kPiqa) + R"({"goal": "g", "sol1": "a", "sol2": ")" + std::string(40, 'b') +
             "\", \"label\": 0}\n");
  EXPECT_THAT(c.error(), HasSubstr("piqa, record 3, choice 1: the continuation has 41 tokens"));
}

TEST(Evaluate, SaysWhatAnEqualEvaluationMustShare) {
  Case c;
  c.ask_piqa();
  c.ask_text("Once upon a time.");
  const Json found = c.run().at("conditions");
  EXPECT_EQ(found, conditions(c.questions, *c.tokenizer));
  EXPECT_EQ(found.at("eval.piqa.records"), 3);
  EXPECT_EQ(found.at("eval.text.txt.bytes"), 17);
  EXPECT_EQ(found.at("eval.tokenizer"), "byte");
  EXPECT_EQ(found.at("eval.num_fewshot"), 0);
  c.questions.tasks.clear();
  c.ask_piqa(std::string(kPiqa).replace(10, 1, "D"));
  c.options.output.clear();  // it holds the scores of the other records
  EXPECT_NE(c.run().at("conditions").at("eval.piqa.sha256"), found.at("eval.piqa.sha256"));
  c.questions.tasks.front().samples.pop_back();
  EXPECT_EQ(conditions(c.questions, *c.tokenizer).at("eval.piqa.records"), 2);
}

TEST(Evaluate, StatesTheRuleForPrefixesAndSpecialTokens) {
  Case c;
  c.ask_piqa();
  const Json rules = c.run().at("xsa").at("tokenizer");
  EXPECT_EQ(rules.at("prefix"), 256);
  EXPECT_THAT(rules.at("prefix_stands").get<std::string>(), HasSubstr("before an empty context"));
  EXPECT_EQ(rules.at("special_tokens"), Json::parse(R"([{"text": "<|endoftext|>", "id": 256}])"));
}

TEST(Evaluate, OverwritesNothingBeforeAllIsCheckedAndHeld) {
  Case c;
  c.ask_piqa();
  c.run();
  const std::string scores = read_file(c.options.output / "scores.jsonl");
  const std::string results = read_file(c.options.output / "results.json");
  c.options.overwrite = true;
  const Questions questions = c.questions;
  c.questions.tasks.front().samples.front().requests.front().continuation_ids.assign(41, 'a');
  EXPECT_THAT(c.error(), HasSubstr("41 tokens, more than the model's context"));
  c.questions = questions;
  {
    // Another evaluation runs there.
    const Json header = Json::parse(scores.substr(0, scores.find('\n')));
    Json wanted = header;
    wanted.erase("format");
    const Journal running(c.options.output / "scores.jsonl", wanted, 6);
    EXPECT_THAT(c.error(), HasSubstr("another evaluation is writing here"));
  }
  EXPECT_EQ(read_file(c.options.output / "scores.jsonl"), scores);
  EXPECT_EQ(read_file(c.options.output / "results.json"), results);
  c.model = made(0.31);
  c.folder.write("out/samples_boolq.jsonl", "{}");
  EXPECT_EQ(c.error(), "");
  EXPECT_NE(read_file(c.options.output / "scores.jsonl"), scores);
  EXPECT_FALSE(std::filesystem::exists(c.options.output / "samples_boolq.jsonl"))
      << "what belongs to the old scores goes with them";
}

TEST(Evaluate, TextsAreReportedEachAndTogether) {
  Case c;
  c.ask_text("Once upon a time there was a text.", "a.txt");
  EXPECT_FALSE(c.run().at("results").contains("all texts")) << "of one there is nothing to add up";
  c.ask_text("And another one.", "b.txt");
  c.options.output.clear();
  const Json results = c.run();
  const Json &a = results.at("results").at("a.txt"), &b = results.at("results").at("b.txt"),
             &all = results.at("results").at("all texts");
  const double bits =
      34 * a.at("bits_per_byte,none").get<double>() + 16 * b.at("bits_per_byte,none").get<double>();
  EXPECT_NEAR(all.at("bits_per_byte,none").get<double>(), bits / 50, 1e-12);
  // The exponent, about 42, is a sum of some ten rounded terms; 2^x has their error, times ln 2.
  const double perplexity = std::exp2(bits / 11);
  EXPECT_NEAR(all.at("word_perplexity,none").get<double>(), perplexity,
              10 * 42 * 0x1p-53 * perplexity);
  EXPECT_EQ(results.at("n-samples").at("all texts").at("effective"), 2);
  EXPECT_EQ(eval::figures(c.model, *c.tokenizer, c.questions)->size(), 3u);
}

TEST(Texts, WhoseNameIsNoTextHaveOneForTheResults) {
  Case c;
  c.ask_text("Once upon a time.", "caf\xE9.txt");
  EXPECT_EQ(c.questions.texts.front().name, "caf\xEF\xBF\xBD.txt");
  EXPECT_EQ(c.error(), "");
}

TEST(LoadQuestions, NamesAContinuationLongerThanTheContextBeforeAnyModelRuns) {
  Case c;
  c.folder.write("piqa.jsonl", kPiqa);
  const QuestionOptions options{.tasks = "piqa", .data = {c.folder.path().string()}};
  const auto load = [&](std::int64_t context) {
    return testing::error_of(
        [&] { load_questions(options, *c.tokenizer, context, [](const std::string&) {}); });
  };
  EXPECT_EQ(load(40), "");
  EXPECT_THAT(load(10), HasSubstr("piqa, record 0, choice 0: the continuation has 13 tokens"));
}

TEST(Evaluate, CutRequestsAreCounted) {
  Case c;
  c.ask_piqa(R"({"goal": "12345678901234", "sol1": "123", "sol2": "1234", "label": 0})");
  // "Question: 12345678901234\nAnswer:" has 32 bytes, with " 123" 36: one less, equal, one more.
  c.model = [] {
    model::ModelConfig config = made().config();
    config.context = 35;
    return model::Gpt(config, 1);
  }();
  EXPECT_EQ(c.run().at("xsa").at("truncated").at("piqa"), 1);
}

TEST(Texts, AreRefusedWhereThereIsNothingToScore) {
  Case c;
  const auto error = [&](const std::vector<std::string>& paths) -> std::string {
    try {
      load_texts(paths, *c.tokenizer, 40);
    } catch (const Error& thrown) {
      return thrown.what();
    }
    return "";
  };
  const std::string empty = c.folder.write("empty", "").string();
  EXPECT_THAT(error({empty}), HasSubstr("expected a text, got an empty file"));
  EXPECT_THAT(error({c.folder.path().string()}), HasSubstr("got a folder"));
  EXPECT_THAT(error({(c.folder / "none").string()}), HasSubstr("none"));
  EXPECT_THAT(error({"a", "a"}), HasSubstr("given twice"));
  EXPECT_THAT([&] { c.run(); },
              ::testing::ThrowsMessage<UsageError>(HasSubstr("nothing to score")));
}

TEST(Texts, OfOneNameAreToldApartByTheirPaths) {
  Case c;
  const std::string a = c.folder.write("a/t", "x").string(),
                    b = c.folder.write("b/t", "y").string();
  const std::vector<TextSamples> texts = load_texts({a, b}, *c.tokenizer, 40);
  EXPECT_EQ(texts[0].name, a);
  EXPECT_EQ(texts[1].name, b);
}

TEST(Texts, OfATasksNameAreToldFromItByTheirPaths) {
  Case c;
  const std::string path = c.folder.write("piqa", "x").string();
  EXPECT_EQ(load_texts({path}, *c.tokenizer, 40).front().name, path);
}

}  // namespace
}  // namespace xsa::eval
