#include "xsa/report/diagnosis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/report/escape.h"
#include "xsa/report/html.h"
#include "xsa/report/metrics.h"

namespace xsa::report {

extern const std::string_view kEmbedded_diagnosis_html, kEmbedded_diagnosis_js;

namespace {

constexpr const char* kGenerator = "xsa diagnose";

constexpr std::array kDiagnosisColumns = {
    "strength",           "value_cosine",   "attention_diagonal", "output_value_cosine",
    "final_value_cosine", "first_key_mass", "sink_mass",          "removed_share"};

/// Calls use(layer, its heads) for each layer; heads are empty in files older than they are.
template <class Use>
void for_each_layer(const Json& diagnosis, const Use& use) {
  for (const Json& layer : diagnosis.at("layers"))
    use(layer, layer.contains("heads") ? layer.at("heads") : Json::array());
}

/// {"layers": [0, 1, ...], "means": {key: [of each layer]}, "heads": {key: [[of each head]]}}
Json plots(const Json& diagnosis) {
  Json layers = Json::array(), means = Json::object(), heads = Json::object();
  for_each_layer(diagnosis, [&](const Json& layer, const Json& layer_heads) {
    layers.push_back(or_null(number_at(layer, "layer")));
    for (const char* const key : kDiagnosisColumns) {
      means[key].push_back(or_null(number_at(layer, key)));
      Json row = Json::array();
      for (const Json& head : layer_heads) row.push_back(or_null(number_at(head, key)));
      heads[key].push_back(row);
    }
  });
  return {{"layers", layers}, {"means", means}, {"heads", heads}};
}

std::string tile(const Json& diagnosis, const char* key, std::string_view label) {
  return "<div class=\"tile\">" + element("b", format_number(mean_over_layers(diagnosis, key), 3)) +
         element("span", label) + "</div>";
}

/// "standard attention · 1,024 train sequences of 256 tokens"
std::string setting(const Json& diagnosis) {
  return cat(diagnosis.value("attention", "–"), " attention · ", sequences_text({&diagnosis}));
}

/// The table of means for who reads without scripts.
std::string table(const Json& diagnosis) {
  std::string html;
  for_each_layer(diagnosis, [&](const Json& layer, const Json&) {
    html += "<tr>" + element("th", format_number(number_at(layer, "layer"), 0), "scope=\"row\"");
    for (const char* const key : kDiagnosisColumns)
      html += element("td", format_number(number_at(layer, key), 3));
    html += "</tr>";
  });
  return html;
}

}  // namespace

std::string sequences_text(const std::vector<const Json*>& diagnoses) {
  std::vector<std::string> kinds;
  for (const Json* const diagnosis : diagnoses) {
    if (!diagnosis->is_object()) continue;
    const double sequences = number_at(*diagnosis, "sequences");
    const double context = number_at(*diagnosis, "context");
    const Json split = diagnosis->value("split", Json());
    std::string kind;
    if (std::isfinite(sequences)) kind += format_number(sequences, 0) + " ";
    if (split.is_string()) kind += split.get<std::string>() + " ";
    kind += sequences == 1 ? "sequence" : "sequences";
    if (std::isfinite(context)) kind += cat(" of ", format_number(context, 0), " tokens");
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  std::string text;
  for (const std::string& kind : kinds) text += cat(text.empty() ? "" : " or ", kind);
  return text.empty() ? "sequences" : text;
}

std::string diagnosis_csv(const Json& diagnosis) {
  std::string text = "layer,head";
  for (const char* const key : kDiagnosisColumns) text += cat(",", key);
  text += "\n";
  const auto add_row = [&](const Json& layer, const std::string& head, const Json& row) {
    text += cat(layer.at("layer").dump(), ",", head);
    for (const char* const key : kDiagnosisColumns) {
      text += ',';
      if (row.contains(key) && row.at(key).is_number()) text += row.at(key).dump();
    }
    text += "\n";
  };
  for_each_layer(diagnosis, [&](const Json& layer, const Json& heads) {
    add_row(layer, "all", layer);
    for (const Json& head : heads) add_row(layer, head.at("head").dump(), head);
  });
  return text;
}

std::string render_diagnosis(const Json& diagnosis, std::string_view model,
                             std::string_view plotly_js) {
  const std::string name = escape_html(model), set = escape_html(setting(diagnosis));
  const std::string tiles =
      tile(diagnosis, "output_value_cosine", "cosine of output and own value") +
      tile(diagnosis, "attention_diagonal", "attention to the own key") +
      tile(diagnosis, "first_key_mass", "attention to the first key") +
      tile(diagnosis, "removed_share", "of the output is removed");
  const std::string rows = table(diagnosis), data = script_json(plots(diagnosis));
  const std::string main =
      fill(kEmbedded_diagnosis_html,
           {{"name", name}, {"setting", set}, {"tiles", tiles}, {"table", rows}});
  const std::string title = name + " – what its attention repeats";
  return render({kGenerator, title, main, data, kEmbedded_diagnosis_js, plotly_js});
}

bool is_diagnosis_csv(std::string_view beginning) {
  return beginning.starts_with(diagnosis_csv({{"layers", Json::array()}}));
}

bool is_diagnosis_page(std::string_view beginning) { return is_page_of(kGenerator, beginning); }

void write_diagnosis(const Json& diagnosis, std::string_view model,
                     const std::filesystem::path& path) {
  atomic_write(path, render_diagnosis(diagnosis, model, read_plotly()));
}

}  // namespace xsa::report
