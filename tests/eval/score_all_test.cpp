#include "xsa/eval/score_all.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <random>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::eval {
namespace {

using Tokens = std::vector<text::Token>;
using testing::TempFolder;

model::Gpt made() {
  model::ModelConfig config;
  config.layers = 2;
  config.width = 64;
  config.heads = 4;
  config.head_dim = 16;
  config.context = 48;
  config.vocab_size = 101;
  model::Gpt model(config, 11);
  const at::NoGradGuard guard;
  at::set_num_threads(1);
  at::manual_seed(12);
  for (const model::NamedTensor& p : model.parameters())
    p.tensor.add_(at::randn(p.tensor.sizes()), 0.3);
  return model;
}

/// Records of three choices, of which the first and the last are the same.
struct Asked {
  std::vector<std::pair<Tokens, Tokens>> ids;
  std::vector<Item> items;

  explicit Asked(std::int64_t records) {
    std::mt19937 random(7);
    const auto draw = [&](unsigned most) {
      Tokens tokens(1 + random() % most);
      for (text::Token& token : tokens) token = random() % 101;
      return tokens;
    };
    for (std::int64_t record = 0; record < records; ++record) {
      const Tokens context = draw(30), same = draw(9), other = draw(9);
      for (const Tokens& choice : {same, other, same}) ids.emplace_back(context, choice);
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      items.push_back({ids[i].first, ids[i].second, static_cast<std::int64_t>(i / 3)});
  }
};

std::vector<double> scores_of(const std::vector<Item>& items, const Budget& budget,
                              Journal* journal = nullptr) {
  static const model::Gpt model = made();
  Scorer scorer(model, 101, budget);
  std::vector<double> result;
  for (const tasks::Score& score :
       score_all(scorer, items, {.progress = false, .journal = journal, .name = {}}))
    result.push_back(score.log_likelihood);
  return result;
}

TEST(ScoreAll, EqualChoicesHaveEqualScoresWhateverTheBatchSize) {
  const Asked asked(40);
  for (const Budget budget : {Budget{}, Budget{.items = 1}, Budget{.items = 2}, Budget{.items = 7},
                              Budget{.tokens = 1}, Budget{.tokens = 100}}) {
    const std::vector<double> scores = scores_of(asked.items, budget);
    for (std::size_t i = 0; i < scores.size(); i += 3)
      EXPECT_EQ(scores[i], scores[i + 2]) << "batch size " << budget.items << ", record " << i / 3;
  }
}

TEST(ScoreAll, EqualRequestsOfDifferentRecordsHaveEqualScores) {
  const Asked asked(10);
  std::vector<Item> items = asked.items;
  for (Item item : asked.items) {
    item.record += 1000;
    items.push_back(item);
  }
  const std::vector<double> scores = scores_of(items, {.items = 4});
  for (std::size_t i = 0; i < asked.items.size(); ++i)
    EXPECT_EQ(scores[i], scores[asked.items.size() + i]);
}

TEST(ScoreAll, AnInterruptedEvaluationEndsInTheBitsOfAWholeOne) {
  const Asked asked(30);
  const Budget budget{.tokens = 400};
  const TempFolder folder;
  const auto path = folder / "scores.jsonl";
  const auto run = [&] {
    Journal journal(path, Json::object(), std::ssize(asked.items));
    return scores_of(asked.items, budget, &journal);
  };
  const std::vector<double> whole = run();
  const std::string lines = read_file(path);
  std::vector<std::size_t> ends;
  for (std::size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1))
    ends.push_back(at);
  EXPECT_EQ(ends.size(), 1 + asked.items.size());
  for (std::size_t line = 0; line < ends.size(); ++line) {
    std::ofstream(path, std::ios::binary) << lines.substr(0, ends[line] + 5);  // and a cut one
    EXPECT_EQ(run(), whole) << "cut after line " << line;
    const std::string again = read_file(path);
    EXPECT_EQ(again.size(), lines.size());
  }
}

}  // namespace
}  // namespace xsa::eval
