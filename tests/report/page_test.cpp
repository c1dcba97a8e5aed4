#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <regex>
#include <string>

#include "tests/support/made_comparison.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/report/comparison.h"

namespace xsa::report {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::MadeComparison;
using ::testing::Not;
using testing::TempFolder;

std::string page_of(const MadeComparison& made, std::string_view plotly = "/* plotly */") {
  const TempFolder folder;
  testing::write_comparison(folder.path(), made);
  return render_page(load_comparison(folder.path()), plotly);
}

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    ++found;
  return found;
}

/// Sets XSA_PLOTLY_JS for a test's time.
class PlotlyPath {
 public:
  explicit PlotlyPath(const std::filesystem::path& path) {
    ::setenv("XSA_PLOTLY_JS", path.c_str(), 1);
  }
  ~PlotlyPath() { ::unsetenv("XSA_PLOTLY_JS"); }
};

TEST(Page, SaysTheVerdictAndShowsTheTableWithoutScripts) {
  const std::string page = page_of({});
  EXPECT_THAT(page,
              AllOf(HasSubstr("<h1>XSA ended with the lower validation loss "),
                    HasSubstr("One seed only"), HasSubstr("validation loss (nats/token)"),
                    HasSubstr("Example CPU @ 2.60GHz"), HasSubstr("xsa compare --name=demo")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(Page, SaysWhatWasMeasuredAndNotWhatIsUsual) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {});
  Comparison comparison = load_comparison(folder.path());
  const auto page = [&] { return render_page(comparison, ""); };
  for (auto& run : comparison.runs) {
    run.record.diagnose["sequences"] = 64;
    run.record.diagnose["context"] = 256;
    run.record.diagnose["split"] = "train";
  }
  EXPECT_THAT(page(), AllOf(HasSubstr("tokens and 64 train sequences of 256 tokens."),
                            HasSubstr("the exclusion removes the own value’s direction"),
                            Not(HasSubstr("validation sequences"))));
  comparison.runs[1].record.diagnose["split"] = "validation";
  EXPECT_THAT(page(), HasSubstr("tokens and 64 train sequences of 256 tokens or 64 validation "
                                "sequences of 256 tokens."));
  for (auto& run : comparison.runs) {
    for (const char* const key : {"sequences", "context", "split"}) run.record.diagnose.erase(key);
    if (run.record.attention == "exclusive") run.record.diagnose["layers"][0]["strength"] = 0.5;
  }
  EXPECT_THAT(page(), AllOf(HasSubstr("tokens and sequences."),
                            HasSubstr("the exclusion removes 0.50 to 1.00 of the share")));
  for (auto& run : comparison.runs) run.record.diagnose = nullptr;
  EXPECT_THAT(page(), HasSubstr("Cosines and attention were not measured."));
}

TEST(Page, LoadsNothing) {
  const std::string page = page_of({});
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_FALSE(
      std::regex_search(page, std::regex("(src|href|action)\\s*=|url\\(|@import|fetch\\(")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(Page, NamesItsPlotButtons) {  // plotly's own choice includes one that sends the chart away
  EXPECT_THAT(page_of({}), HasSubstr("modeBarButtons: [["));
}

TEST(Page, EscapesHostileNames) {
  const std::string page = page_of({.name = "</title><script>alert('1')</script>{{plotly}}\"&"});
  EXPECT_EQ(count(page, "alert("), count(page, "&lt;script&gt;alert("));
  EXPECT_THAT(page, HasSubstr("&lt;/title&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"
                              "{{plotly}}&quot;&amp;"));
  EXPECT_EQ(count(page, "<script"), 3u);
  EXPECT_EQ(count(page, "</script"), 3u);
}

TEST(Page, EscapesHostileRecipesFoldersAndMachines) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {});
  Comparison comparison = load_comparison(folder.path());
  comparison.info["machine"]["<i>key"] = "<i>machine";
  comparison.info["commit"] = "<i>commit";
  comparison.runs[0].recipe["data"]["<i>setting"] = "</script><i>value";
  comparison.runs[1].record.folder = "runs/<i>folder";
  const std::string page = render_page(comparison, "");
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_EQ(count(page, "</script"), 3u);
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;i&gt;machine"), HasSubstr("&lt;i&gt;folder"),
                          HasSubstr("&lt;i&gt;value")));
}

TEST(Page, SurvivesTextThatIsNotUtf8) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {});
  Comparison comparison = load_comparison(folder.path());
  comparison.runs[0].recipe["data"]["source"] = "caf\xe9";
  EXPECT_THAT(render_page(comparison, ""), HasSubstr("caf\xef\xbf\xbd"));
}

TEST(Page, WarnsWhereMoreThanTheAttentionDiffers) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {});
  Comparison comparison = load_comparison(folder.path());
  EXPECT_THAT(render_page(comparison, ""), Not(HasSubstr("class=\"notice\"")));
  comparison.runs[1].recipe["train"]["lr"] = 0.5;
  EXPECT_THAT(render_page(comparison, ""), HasSubstr("also differ in train.lr"));
}

TEST(Page, ShowsADashWhereNothingWasMeasured) {
  EXPECT_THAT(page_of({.diagnosed = false}),
              HasSubstr("attention to the own key</th><td>–</td><td>–</td><td>–</td><td>–</td>"));
}

TEST(WriteReport, PutsPlotlyIntoOnePage) {
  const TempFolder folder;
  const PlotlyPath plotly(folder.write("plotly.min.js", "var Plotly = {{not a place}};"));
  testing::write_comparison(folder / "run", {});
  write_report(folder / "run");
  EXPECT_THAT(read_file(folder / "run/report.html"),
              HasSubstr("<script>var Plotly = {{not a place}};</script>"));
}

TEST(WriteReport, FindsThePlotlyOfTheBuild) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {});
  const std::string error = error_of([&] { write_report(folder.path()); });
  if (error.empty()) {
    EXPECT_GT(std::filesystem::file_size(folder / "report.html"), 1u << 20);
  } else {
    EXPECT_THAT(error, HasSubstr("expected plotly.min.js at"));
  }
}

TEST(WriteReport, SaysWhatToDoWithoutPlotly) {
  const TempFolder folder;
  const PlotlyPath plotly(folder / "absent.js");
  testing::write_comparison(folder.path(), {});
  EXPECT_THAT(error_of([&] { write_report(folder.path()); }),
              AllOf(HasSubstr("absent.js"), HasSubstr("make build"), HasSubstr("XSA_PLOTLY_JS")));
  EXPECT_FALSE(std::filesystem::exists(folder / "report.html"));
}

TEST(WriteReport, RefusesAPlotlyThatWouldEndItsScript) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {});
  for (const char* const text : {"a = '</SCRIPT>'", "b = '<!-- '", ""}) {
    const PlotlyPath plotly(folder.write("plotly.min.js", text));
    EXPECT_THAT(error_of([&] { write_report(folder.path()); }), HasSubstr("plotly.min.js: "));
  }
}

}  // namespace
}  // namespace xsa::report
