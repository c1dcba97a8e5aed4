#include "xsa/report/figures.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/made_sweep.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa::report {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeSweep;
using ::testing::Not;
using testing::TempFolder;

Figure find(const std::vector<Figure>& figures, const std::string& number) {
  const auto figure = std::find_if(figures.begin(), figures.end(),
                                   [&](const Figure& each) { return each.number == number; });
  check(figure != figures.end(), "no figure ", number);
  return *figure;
}

std::vector<Figure> figures_with(const MadeSweep& made) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), made);
  return figures_of(read_parts({folder.path()}));
}

std::vector<std::string> numbers(const std::vector<Figure>& figures) {
  std::vector<std::string> all;
  for (const Figure& figure : figures) all.push_back(figure.number);
  return all;
}

TEST(Figures, OfRatesShowBothLossesAndTheMargin) {
  const auto figures = figures_with({.settings = {{"1e-3", 2.3, 0.04}, {"2e-3", 2.2, 0.06}}});
  EXPECT_THAT(numbers(figures), ElementsAre("Fig. 4", "Fig. 1", "Fig. 1, masses", "Fig. 1, by head",
                                            "Fig. 1, over training"));
  const Figure& figure = find(figures, "Fig. 4");
  const auto& panels = figure.views.at(0).panels;
  ASSERT_EQ(panels.size(), 2u);
  EXPECT_EQ(panels[0].scale, "log");
  const Trace& standard = panels[0].traces.at(0);
  EXPECT_THAT(standard.x, ElementsAre(Json(1e-3), Json(2e-3)));
  EXPECT_THAT(standard.y, ElementsAre(DoubleNear(2.32, 1e-9), DoubleNear(2.22, 1e-9)));
  EXPECT_THAT(standard.low, ElementsAre(DoubleNear(2.31, 1e-9), DoubleNear(2.21, 1e-9)));
  // Seeds 1, 2, 3: 0.042, 0.038, 0.042.
  const Trace& margin = panels[1].traces.at(0);
  EXPECT_NEAR(margin.y[0], 0.0406667, 1e-6);
  EXPECT_NEAR(margin.high[0] - margin.y[0], 4.3027 * 0.0023094 / 1.7320508, 1e-6);
  EXPECT_THAT(figure.caption, HasSubstr("at 2 of 2 learning rates, by 0.0407 to 0.0607 nats"));
  ASSERT_EQ(figure.table.rows.size(), 2u);
  EXPECT_EQ(shown(figure.table.rows[1][6]), "+0.0607");
}

TEST(Figures, OfLengthsSayWhetherTheMarginGrows) {
  MadeSweep made{.name = "lengths", .figure = "fig5", .axis = "length", .label = "length"};
  made.settings = {{"1024", 2.1, 0.13}, {"64", 2.4, 0.04}, {"256", 2.2, 0.07}};
  EXPECT_THAT(find(figures_with(made), "Fig. 5").caption,
              HasSubstr("from 0.0407 at 64 to 0.1307 at 1024, and grows with every step"));
  made.settings[2].margin = 0.02;
  EXPECT_THAT(find(figures_with(made), "Fig. 5").caption, HasSubstr("with 1 of 2 steps"));
}

TEST(Figures, OfOneSeedSayThatChanceIsNotKnown) {
  const auto caption = [](const char* kind, const char* number, const auto& seeds) {
    return find(figures_with({.figure = kind, .seeds = seeds}), number).caption;
  };
  const std::vector<std::int64_t> one = {1}, two = {1, 2};
  EXPECT_THAT(caption("fig4", "Fig. 4", one), HasSubstr("Of one seed"));
  EXPECT_THAT(caption("variants", "Variants", one), HasSubstr("Of one seed"));
  EXPECT_THAT(caption("fig4", "Fig. 4", two), Not(HasSubstr("Of one seed")));
}

TEST(Figures, OfSinksAreBarsWithTheMassesBesideThem) {
  const auto figures = figures_with(
      {.name = "s", .figure = "fig6", .axis = "sinks", .settings = {{"none"}, {"tokens"}}});
  EXPECT_EQ(find(figures, "Fig. 6").views.at(0).panels.at(1).traces.at(0).kind, "bar");
  const auto masses = find(figures, "Fig. 6, masses").views.at(0).panels;
  ASSERT_EQ(masses.size(), 3u);
  EXPECT_NEAR(masses[0].traces.at(0).y.at(0), 0.015, 1e-9);
}

TEST(Figures, OfSizesShowCurvesAndTestsOfSixSeeds) {
  const auto figures = figures_with({.name = "sizes",
                                     .figure = "fig3",
                                     .axis = "size",
                                     .settings = {{"0.2M"}, {"0.8M"}},
                                     .seeds = {1, 2, 3, 4, 5, 6}});
  const Figure& figure = find(figures, "Fig. 3");
  const auto& panels = figure.views.at(0).panels;
  ASSERT_EQ(panels.size(), 3u);
  EXPECT_EQ(panels[0].title, "0.2M");
  EXPECT_EQ(panels[0].traces.size(), 4u);
  EXPECT_EQ(panels[2].traces.size(), 2u);
  EXPECT_EQ(panels[2].traces[0].style, "2") << "0 and 1 are the attentions' colours";
  EXPECT_EQ(panels[2].traces[0].x.size(), 3u);
  EXPECT_EQ(shown(figure.table.rows[0].back()), "0.0312");
  EXPECT_THAT(figure.paper, HasSubstr("paper, 0.7B, 1.4B, 2.7B"));
}

TEST(Figures, OfSizesShowTheSearchOfTheBaselinesRate) {
  const TempFolder folder;
  testing::write_sweep(folder.path(),
                       {.figure = "fig3", .settings = {{"1e-3", 2.3}, {"2e-3", 2.2}}});
  Json sweep = read_json_file(folder / "sweep.json"), points = Json::array();
  sweep["axes"] = {{{"name", "size"}, {"label", "size"}},
                   {{"name", "lr"}, {"label", "learning rate"}},
                   {{"name", "attention"}, {"label", "attention"}}};
  for (Json point : sweep["points"]) {
    const Json labels = point["labels"];
    point["labels"] = {{"size", "0.2M"}, {"lr", labels["lr"]}, {"attention", labels["attention"]}};
    if (labels["attention"] == "standard" || labels["lr"] == "2e-3") points.push_back(point);
  }
  sweep["points"] = points;
  write_json_file(folder / "sweep.json", sweep);

  const auto figures = figures_of(read_parts({folder.path()}));
  EXPECT_EQ(find(figures, "Fig. 3").views.at(0).panels.at(0).title, "0.2M, 2e-3");
  const Figure search = find(figures, "Fig. 3, search");
  const auto& traces = search.views.at(0).panels.at(0).traces;
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces[0].name, "0.2M");
  EXPECT_THAT(traces[0].x, ElementsAre(Json(1e-3), Json(2e-3)));
  EXPECT_THAT(traces[0].y, ElementsAre(DoubleNear(2.32, 1e-9), DoubleNear(2.22, 1e-9)));
  EXPECT_EQ(search.caption, "Lowest at learning rate – 0.2M: 2e-3.");
  // A model of which both attentions are known comes first.
  EXPECT_EQ(find(figures, "Fig. 1").views.at(0).label, "0.2M, 2e-3");
}

TEST(Figures, OfSingleRunsAreTheirCurvesAlsoOfOneThatHasNotEnded) {
  const TempFolder folder;
  testing::write_made_run(folder / "alone", "exclusive", 1, 2.0);
  const auto alone = find(figures_of(read_parts({folder.path()})), "Fig. 3");
  ASSERT_EQ(alone.views.size(), 1u);
  EXPECT_EQ(alone.views[0].panels.at(0).traces.at(0).name, "XSA, training");
  EXPECT_EQ(alone.views[0].panels[0].traces.size(), 2u);

  std::filesystem::remove(folder / "alone/summary.json");
  const Parts parts = read_parts({folder.path()});
  EXPECT_THAT(parts.problems.at(0), HasSubstr("the run has not ended"));
  EXPECT_EQ(find(figures_of(parts), "Fig. 3").views.at(0).panels[0].traces.size(), 2u);
}

TEST(Figures, OfASizeWithoutCurvesHaveNoEmptyPanelOfMargins) {
  const TempFolder folder;
  testing::write_made_run(folder / "a", "standard", 1, 2.1);
  testing::write_made_run(folder / "b", "exclusive", 1, 2.0);
  EXPECT_EQ(find(figures_of(read_parts({folder.path()})), "Fig. 3").views.at(0).panels.size(), 2u);
  std::filesystem::remove(folder / "b/metrics.jsonl");
  EXPECT_EQ(find(figures_of(read_parts({folder.path()})), "Fig. 3").views.at(0).panels.size(), 1u);
}

TEST(Figures, OfOneSizeSayWhichIsHigher) {
  EXPECT_EQ(find(figures_with({.figure = "fig3", .axis = "size", .settings = {{"1M", 2.2, -0.05}}}),
                 "Fig. 3")
                .caption,
            "XSA ends with the higher validation loss, by 0.0493 nats a token.");
}

TEST(Figures, TakeTheLossesOfTheSeedsThatHaveBothAttentions) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {.settings = {{"1e-3", 2.2}}});
  std::filesystem::remove(folder / "points/lr=1e-3,attention=exclusive,seed=3/summary.json");
  const Figure figure = find(figures_of(read_parts({folder.path()})), "Fig. 4");
  const auto& row = figure.table.rows.at(0);
  EXPECT_EQ(row[1].value, 2);
  EXPECT_NEAR(row[2].value - row[4].value, row[6].value, 1e-9) << "loss, loss, margin";
  EXPECT_NEAR(row[2].value, 2.215, 1e-9);
}

TEST(Figures, OfVariantsCompareEachWithTheFirst) {
  const auto figures = figures_with({.name = "v",
                                     .figure = "variants",
                                     .axis = "variant",
                                     .settings = {{"plain", 2.2}, {"gate", 2.1, 0.03}}});
  const Figure& figure = find(figures, "Variants");
  ASSERT_EQ(figure.table.rows.size(), 4u);
  EXPECT_EQ(shown(figure.table.rows[0][6]), "–");
  EXPECT_EQ(shown(figure.table.rows[2][6]), "+0.1000");
  EXPECT_THAT(figure.caption, HasSubstr("Lowest: gate with XSA"));
}

TEST(Figures, OverLayersLeaveOutSinksWhereThereAreNone) {
  const auto figures = figures_with({});
  EXPECT_EQ(find(figures, "Fig. 1").views.at(0).panels.size(), 3u);
  EXPECT_EQ(find(figures, "Fig. 1, masses").views.at(0).panels.size(), 3u);
  EXPECT_EQ(find(figures, "Fig. 1, by head").views.at(0).panels.at(0).heat.size(), 2u);
  const Trace first = find(figures, "Fig. 1, over training").views.at(0).panels.at(0).traces.at(0);
  EXPECT_THAT(first.x, ElementsAre(Json(10.0), Json(20.0), Json(30.0)));
  EXPECT_NEAR(first.y[0], 0.15, 1e-9);
}

TEST(Figures, OverTrainingTakeTheStepsThatAllSeedsHave) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  const std::string path = "points/lr=1e-3,attention=standard,seed=1/metrics.jsonl";
  const std::string lines = read_file(folder / path);
  folder.write(path, lines.substr(0, lines.rfind("{\"type\":\"diagnose\"")));  // not the last one
  const Figure figure = find(figures_of(read_parts({folder.path()})), "Fig. 1, over training");
  const auto& panels = figure.views.at(0).panels;
  EXPECT_THAT(panels.at(0).traces.at(0).x, ElementsAre(Json(10.0), Json(20.0)));
  EXPECT_EQ(panels[0].traces.at(1).x.size(), 3u);
}

Evaluated evaluated(const std::string& attention, double piqa, double hellaswag) {
  return {"runs/a",
          attention,
          "a",
          7e8,
          {{"piqa", {{"acc", piqa}}}, {"hellaswag", {{"acc", hellaswag}, {"acc_norm", 0.5}}}}};
}

TEST(Tables, OfTasksStandBesideThePapers) {
  Parts parts;
  parts.evaluations = {evaluated("standard", 0.5, 0.3), evaluated("exclusive", 0.52, 0.31)};
  const Figure& table = find(figures_of(parts), "Table 2");
  EXPECT_THAT(table.table.head,
              ElementsAre("task", "0.70B: standard", "0.70B: XSA", "0.70B: gain",
                          "paper, 0.7B: gain", "paper, 1.4B: gain", "paper, 2.7B: standard",
                          "paper, 2.7B: XSA", "paper, 2.7B: gain"));
  const auto cells = [&](std::size_t row) {
    std::vector<std::string> texts;
    for (const Cell& cell : table.table.rows.at(row)) texts.push_back(shown(cell));
    return texts;
  };
  EXPECT_THAT(cells(1), ElementsAre("piqa", "50.00", "52.00", "+2.00", "", "", "", "", ""));
  EXPECT_THAT(cells(2), ElementsAre("average acc of 2 tasks", "40.00", "41.50", "+1.50", "+0.26",
                                    "+1.03", "58.06", "59.42", "+1.36"));
  EXPECT_EQ(cells(3)[1], "50.00");
  EXPECT_THAT(table.paper, HasSubstr("not all eight"));
}

TEST(Tables, AverageTheSeedsOfAModelAndGiveNoGainWithoutItsTwin) {
  Parts parts;
  parts.evaluations = {evaluated("standard", 0.5, 0.3), evaluated("standard", 0.6, 0.3)};
  const Figure& table = find(figures_of(parts), "Table 2");
  EXPECT_EQ(shown(table.table.rows.at(1)[1]), "55.00");
  EXPECT_EQ(shown(table.table.rows.at(1)[3]), "–");
  EXPECT_THAT(table.caption, HasSubstr("No model was scored with both"));
}

TEST(Tables, NeverAverageModelsOfOtherTrainingsOrQuestions) {
  const auto heads_with = [](const auto& change) {
    Parts parts;
    parts.evaluations = {evaluated("standard", 0.5, 0.3), evaluated("standard", 0.6, 0.3),
                         evaluated("exclusive", 0.6, 0.3)};
    for (Evaluated& one : parts.evaluations) {
      one.conditions.values = {{"train.steps", 10}, {"train.seed", 1}};
      one.asked.values = {{"piqa's records", 100}};
    }
    change(parts.evaluations[1]);
    return find(figures_of(parts), "Table 2").table;
  };
  const Table same = heads_with([](Evaluated& one) { one.conditions.values["train.seed"] = 2; });
  EXPECT_EQ(shown(same.rows.at(1)[1]), "55.00");

  const Table longer =
      heads_with([](Evaluated& one) { one.conditions.values["train.steps"] = 60; });
  EXPECT_EQ(longer.head.at(1), "0.70B, train.steps 10: standard");
  EXPECT_EQ(longer.head.at(4), "0.70B, train.steps 60: standard");
  EXPECT_EQ(shown(longer.rows.at(1)[1]), "50.00");
  EXPECT_EQ(shown(longer.rows.at(1)[2]), "60.00");
  EXPECT_EQ(shown(longer.rows.at(1)[4]), "60.00");

  const Table fewer = heads_with([](Evaluated& one) { one.asked.values["piqa's records"] = 9; });
  EXPECT_EQ(fewer.head.at(4), "0.70B, piqa's records 9: standard");
  EXPECT_EQ(shown(fewer.rows.at(1)[1]), "50.00");
}

TEST(Tables, OfRunsTakeTheEndOfARunForNoSeedOfAnUnfinishedOne) {
  const TempFolder folder;
  for (const std::int64_t seed : {1, 2}) {
    const std::string run = cat("run-seed", seed);
    testing::write_made_run(folder / run, "standard", seed, 2.0);
    std::string lines;
    for (std::int64_t step = 10; step <= 10 * seed; step += 10)
      lines += Json({{"type", "eval"},
                     {"step", step},
                     {"tokens", step},
                     {"name", "piqa"},
                     {"metrics", {{"acc", 0.25 * static_cast<double>(seed)}}}})
                   .dump() +
               "\n";
    folder.write(run + "/metrics.jsonl", lines);
  }
  const Table table = find(figures_of(read_parts({folder.path()})), "Table 2").table;
  EXPECT_EQ(shown(table.rows.at(0)[1]), "25.00");
  EXPECT_EQ(shown(table.rows.at(0)[4]), "50.00");
  EXPECT_THAT(table.head.at(4), HasSubstr("step 20"));
}

TEST(Tables, OfTasksSayHowFarOtherRecordsWouldMoveTheGain) {
  Parts parts;
  parts.evaluations = {evaluated("standard", 0.5, 0.3), evaluated("exclusive", 0.52, 0.31)};
  for (Evaluated& one : parts.evaluations) {
    one.tasks["piqa"]["acc_stderr"] = one.attention == "standard" ? 0.03 : 0.06;
    one.tasks["hellaswag"]["acc_stderr"] = one.attention == "standard" ? 0.04 : 0.08;
  }
  const Figure& table = find(figures_of(parts), "Table 2");
  const auto& errors = table.table.rows.at(4);
  EXPECT_EQ(shown(errors[1]), "2.50");  // sqrt(3^2 + 4^2) / 2
  EXPECT_EQ(shown(errors[2]), "5.00");
  EXPECT_EQ(shown(errors[3]), "5.59");
  EXPECT_THAT(table.caption, HasSubstr("0.70B: +1.50 ± 5.59 (paper:"));
}

TEST(Figures, OfTheBlockShowWhatXsaCosts) {
  Parts parts;
  parts.blocks = {{"block.json", Json::parse(R"({"type": "float32", "batch": 2, "results": [
      {"length": 512, "mode": "forward",
       "standard": {"tokens_per_s": {"median": 1000, "quartiles": [990, 1010]}, "peak_bytes": 1048576},
       "exclusive": {"tokens_per_s": {"median": 995, "quartiles": [985, 1005]}, "peak_bytes": 1048576},
       "time_ratio": {"median": 1.005, "quartiles": [1.001, 1.009]}, "memory_ratio": 1.001}]})")}};
  const Figure& figure = find(figures_of(parts), "Fig. 2");
  EXPECT_THAT(
      figure.caption,
      HasSubstr("time by +0.50 % to +0.50 % (medians), its peak memory by at most +0.10 %"));
  const auto& panels = figure.views.at(0).panels;
  ASSERT_EQ(panels.size(), 4u);
  EXPECT_THAT(panels[1].traces.at(0).high, ElementsAre(DoubleNear(0.9, 1e-9)));
  EXPECT_THAT(panels[2].traces.at(0).y, ElementsAre(1.0));
}

}  // namespace
}  // namespace xsa::report
