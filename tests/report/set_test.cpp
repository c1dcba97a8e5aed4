#include "xsa/report/set.h"

#include <gmock/gmock.h>

#include <regex>

#include "tests/support/made_sweep.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempFolder;

std::string page_of(const TempFolder& folder) {
  return render_set(read_set({folder.path()}), "/* plotly */");
}

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    ++found;
  return found;
}

TEST(SetPage, ShowsEveryFigureWithItsButtonsAndWhatThePaperSays) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  const std::string page = page_of(folder);
  EXPECT_THAT(page,
              AllOf(HasSubstr("Fig. 4 · Loss against learning rate"),
                    HasSubstr("paper, 1.3B: four learning rates"), Not(HasSubstr("No data here"))));
  for (const char* const format : {".svg", ".png", ".csv"})
    EXPECT_EQ(count(page, std::string("data-save=\"") + format + "\""), 5u) << format;
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(SetPage, LoadsNothing) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  const std::string page = page_of(folder);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:"))));
  EXPECT_FALSE(
      std::regex_search(page, std::regex("(src|href|action)\\s*=|url\\(|@import|fetch\\(")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(SetPage, KeepsHostileTextText) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {.name = "</script><i>", .label = "<i>label"});
  folder.write("sub/x.json", "{\"<i>\": ");
  const SetReport report = read_set({folder.path(), folder / "sub/x.json"});
  const std::string page = render_set(report, "");
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_EQ(count(page, "</script"), 3u);
}

TEST(SetPage, NamesWhatIsMissing) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  folder.write("points/lr=1e-3,attention=standard,seed=1/metrics.jsonl", "{\n");
  const std::string page = page_of(folder);
  EXPECT_THAT(page, AllOf(HasSubstr("Left out, as missing"), HasSubstr("seed=1/metrics.jsonl:1:"),
                          HasSubstr("Fig. 4")));
}

TEST(SetPage, SaysWhichFiguresHaveNoDataWhereItHasSeveralStudies) {
  const TempFolder folder;
  testing::write_sweep(folder / "rates", {});
  testing::write_sweep(folder / "again", {});
  EXPECT_THAT(page_of(folder), HasSubstr("No data here for: Fig. 2 (xsa bench block)"));
}

TEST(SetPage, SaysSoWhereThereIsNothing) {
  const TempFolder folder;
  EXPECT_THAT(page_of(folder), HasSubstr("nothing to show yet"));
}

TEST(SetReports, WriteTheDataOfEachFigure) {
  const TempFolder folder;
  testing::write_sweep(folder / "rates", {});
  const SetReport report = read_set({folder / "rates"});
  const auto files = csv_files(report, "csv");
  EXPECT_THAT(files.at("csv/fig4-rates.csv"),
              HasSubstr("final validation loss,standard,0.001,2.22,2.21,2.23\r\n"));
  EXPECT_THAT(files.at("csv/fig4-rates-table.csv"),
              ::testing::StartsWith("learning rate,seeds,standard,standard ±,XSA,XSA ±,margin"));
  for (const auto& [path, csv] : files) EXPECT_TRUE(is_figure_csv(csv)) << path;
  const Json json = to_json(report);
  for (const Json& figure : json.at("figures"))
    for (const auto& [end, csv] : figure["csvs"].items())
      EXPECT_EQ(files.at("csv/" + figure["id"].get<std::string>() + end), csv);
}

TEST(SweepTable, HasARowASettingAndNamesThePointsThatAreNotDone) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  Json sweep = read_json_file(folder / "sweep.json");
  sweep["points"].push_back({{"folder", "points/x"}, {"status", "failed"}, {"error", "no memory"}});
  const std::string table = sweep_table(sweep, folder.path());
  EXPECT_THAT(table, AllOf(HasSubstr("1e-3       3   2.2200 ± 0.0100   2.1693 ± 0.0103   +0.0507"),
                           HasSubstr("x: failed, no memory\n")));
}

TEST(SweepTable, ComparesWithTheFirstSettingWhereNoneHasBothAttentions) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  Json sweep = read_json_file(folder / "sweep.json");
  for (Json& point : sweep["points"]) {
    const std::string attention = point["labels"]["attention"];
    point["labels"] = {
        {"exclusion", attention + " of " + point["labels"]["lr"].get<std::string>()}};
  }
  const std::string table = sweep_table(sweep, folder.path());
  EXPECT_THAT(table,
              AllOf(HasSubstr("against the first row"), Not(HasSubstr("margin")),
                    HasSubstr("XSA       3            2.1693   0.0103                 +0.0507")));
}

TEST(SweepTable, LeavesOutTheIntervalThatOneSeedDoesNotHave) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  Json sweep = read_json_file(folder / "sweep.json");
  EXPECT_THAT(sweep_table(sweep, folder.path()), HasSubstr("95 %"));
  Json points = Json::array();
  for (const Json& point : sweep["points"])
    if (point["seed"] == sweep["points"][0]["seed"]) points.push_back(point);
  sweep["points"] = points;
  EXPECT_THAT(sweep_table(sweep, folder.path()),
              AllOf(HasSubstr("margin"), Not(HasSubstr("95 %"))));
}

}  // namespace
}  // namespace xsa::report
