#include "xsa/report/diagnosis.h"

#include <gmock/gmock.h>

#include <regex>
#include <string>

namespace xsa::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Json row(const char* kind, int number, double value) {
  return {{kind, number},
          {"strength", 1.0},
          {"value_cosine", value},
          {"attention_diagonal", 0.25},
          {"output_value_cosine", 0.5},
          {"final_value_cosine", 0.0},
          {"first_key_mass", 0.125},
          {"sink_mass", 0.0},
          {"removed_share", 0.375}};
}

Json made() {
  Json layers = Json::array();
  for (const int layer : {0, 1}) {
    layers.push_back(row("layer", layer, 0.1));
    layers.back()["heads"] = {row("head", 0, 0.05), row("head", 1, 0.15)};
  }
  return {{"attention", "exclusive"}, {"sequences", 1024}, {"context", 256},
          {"split", "train"},         {"seed", 1337},      {"layers", layers}};
}

TEST(DiagnosisCsv, HasARowForEachLayerAndHead) {
  Json diagnosis = made();
  diagnosis["layers"][1]["value_cosine"] = nullptr;
  EXPECT_EQ(diagnosis_csv(diagnosis),
            "layer,head,strength,value_cosine,attention_diagonal,output_value_cosine,"
            "final_value_cosine,first_key_mass,sink_mass,removed_share\n"
            "0,all,1.0,0.1,0.25,0.5,0.0,0.125,0.0,0.375\n"
            "0,0,1.0,0.05,0.25,0.5,0.0,0.125,0.0,0.375\n"
            "0,1,1.0,0.15,0.25,0.5,0.0,0.125,0.0,0.375\n"
            "1,all,1.0,,0.25,0.5,0.0,0.125,0.0,0.375\n"
            "1,0,1.0,0.05,0.25,0.5,0.0,0.125,0.0,0.375\n"
            "1,1,1.0,0.15,0.25,0.5,0.0,0.125,0.0,0.375\n");
}

TEST(DiagnosisPage, ShowsTilesTableAndData) {
  const std::string page = render_diagnosis(made(), "runs/demo", "/* plotly */");
  EXPECT_THAT(page, AllOf(HasSubstr("exclusive attention · 1,024 train sequences of 256 tokens"),
                          HasSubstr("<b>0.500</b><span>cosine of output and own value</span>"),
                          HasSubstr("<b>0.125</b><span>attention to the first key</span>"),
                          HasSubstr("\"removed_share\":[[0.375,0.375],[0.375,0.375]]"),
                          HasSubstr("/* plotly */"), Not(HasSubstr("{{"))));
}

TEST(DiagnosisPage, OfAFileWithoutHeadsHasNoMaps) {
  Json diagnosis = made();
  for (Json& layer : diagnosis["layers"]) {
    layer.erase("heads");
    layer.erase("first_key_mass");
  }
  EXPECT_THAT(
      render_diagnosis(diagnosis, "old", ""),
      AllOf(HasSubstr("\"first_key_mass\":[null,null]"), HasSubstr("\"removed_share\":[[],[]]"),
            HasSubstr("<b>–</b><span>attention to the first key</span>")));
}

TEST(Diagnosis, KnowsItsOwnFiles) {
  const std::string csv = diagnosis_csv(made()), page = render_diagnosis(made(), "runs/demo", "");
  EXPECT_TRUE(is_diagnosis_csv(csv) && is_diagnosis_page(page));
  for (const std::string& other : {page, std::string("layer,head\n"), std::string()})
    EXPECT_FALSE(is_diagnosis_csv(other));
  for (const std::string& other : {csv, std::string("<!DOCTYPE html>"), std::string()})
    EXPECT_FALSE(is_diagnosis_page(other));
}

TEST(DiagnosisPage, LoadsNothingAndEscapesHostileNames) {
  Json diagnosis = made();
  diagnosis["split"] = "</script><i>";
  const std::string page = render_diagnosis(diagnosis, "<script>alert('1')</script>{{plotly}}", "");
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;{{plotly}}"),
                          Not(HasSubstr("<script>alert")), Not(HasSubstr("<i>"))));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:"))));
  EXPECT_FALSE(
      std::regex_search(page, std::regex("(src|href|action)\\s*=|url\\(|@import|fetch\\(")));
}

}  // namespace
}  // namespace xsa::report
