#include "xsa/report/figure.h"

#include <gmock/gmock.h>

#include <cmath>

namespace xsa::report {
namespace {

TEST(Csv, HasALineAPointWithFieldsQuotedWhereNeeded) {
  Figure figure{"fig4", "Fig. 4"};
  Trace trace{"XSA, \"late\"", "exclusive", {0.001, "none"}, {2.5, std::nan("")}};
  trace.low = {2.25, std::nan("")};
  trace.high = {2.75, std::nan("")};
  figure.views = {{"all", {{"loss", "learning rate", "nats", {trace}}}}};
  EXPECT_EQ(csvs_of(figure).at(".csv"),
            "view,panel,series,learning rate,value,low,high\r\n"
            "all,loss,\"XSA, \"\"late\"\"\",0.001,2.5,2.25,2.75\r\n"
            "all,loss,\"XSA, \"\"late\"\"\",none,,,\r\n");
}

TEST(Csv, OfHeadsNamesLayerAndHead) {
  Panel panel{"standard", "head", "layer"};
  panel.heat = {{0.5, 0.25}};
  Figure figure{"heads", "Fig. 1"};
  figure.views = {{"", {panel}}};
  EXPECT_EQ(csvs_of(figure).at(".csv"),
            "view,panel,series,head,value,low,high\r\n"
            ",standard,layer 0,0,0.5,,\r\n,standard,layer 0,1,0.25,,\r\n");
}

TEST(Csv, OfATableHasPlainNumbers) {
  Figure figure{"table2", "Table 2"};
  figure.table = {{"task", "gain"}, {{{"piqa"}, number_cell(-1.25, 1, true)}}};
  EXPECT_EQ(csvs_of(figure).at(".csv"), "task,gain\r\npiqa,-1.25\r\n");
  figure.views = {{"", {{"loss", "rate", "nats"}}}};
  EXPECT_EQ(csvs_of(figure).at("-table.csv"), "task,gain\r\npiqa,-1.25\r\n");
  figure.table.rows[0][1] = chance_cell(2e-5);
  EXPECT_EQ(shown(figure.table.rows[0][1]), "< 0.0001");
  EXPECT_EQ(csvs_of(figure).at("-table.csv"), "task,gain\r\npiqa,2e-05\r\n");
  EXPECT_EQ(to_json(figure)["table"]["rows"][0][1], 2e-5);
}

TEST(Cells, AreShownAsPeopleReadThem) {
  EXPECT_EQ(shown(number_cell(-1.25, 2, true)), "−1.25");
  EXPECT_EQ(shown(number_cell(std::nan(""), 2)), "–");
  EXPECT_EQ(shown(chance_cell(1e-7)), "< 0.0001");
  EXPECT_EQ(shown(chance_cell(0.03125)), "0.0312");
  EXPECT_EQ(shown({}), "");
}

TEST(FigureCsv, IsKnownByItsHead) {
  Figure plot{"fig4", "Fig. 4", "", ""};
  plot.views = {{"", {{"loss", "rate", "nats"}}}};
  Figure table{"table2", "Table 2", "", ""};
  table.table = {{"task", "7K: standard"}, {{{"piqa"}, number_cell(0.5, 2)}}};
  for (const Figure& figure : {plot, table}) EXPECT_TRUE(is_figure_csv(csvs_of(figure).at(".csv")));
  for (const char* const other : {"", "mine\r\n", "view,panel,series,", "task,mine\n"})
    EXPECT_FALSE(is_figure_csv(other)) << other;
}

}  // namespace
}  // namespace xsa::report
