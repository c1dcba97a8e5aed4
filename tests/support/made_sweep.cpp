#include "tests/support/made_sweep.h"

#include <fstream>

#include "xsa/base/error.h"
#include "xsa/base/json.h"

namespace xsa::testing {
namespace {

namespace fs = std::filesystem;

/// Not written aside and synced: a test makes dozens.
void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void write_json(const fs::path& path, const Json& json) { write(path, json.dump()); }

Json quantities(double depth) {
  return {{"value_cosine", 0.1 + depth},
          {"attention_diagonal", 0.05 + depth},
          {"output_value_cosine", 0.2 + depth},
          {"first_key_mass", 0.3 * depth},
          {"sink_mass", 0.0},
          {"removed_share", 0.04 + depth}};
}

Json layers(bool with_heads) {
  Json all = Json::array();
  for (int layer = 0; layer < 2; ++layer) {
    Json entry = quantities(0.1 * layer);
    entry["layer"] = layer;
    for (int head = 0; with_heads && head < 2; ++head) {
      entry["heads"].push_back(quantities(0.1 * layer + 0.01 * head));
      entry["heads"].back()["head"] = head;
    }
    all.push_back(entry);
  }
  return all;
}

}  // namespace

void write_made_run(const fs::path& folder, const std::string& attention, std::int64_t seed,
                    double loss) {
  write_json(folder / "recipe.json", {{"model", {{"layers", 2}, {"attention", attention}}},
                                      {"train", {{"lr", 1e-3}, {"seed", seed}}}});
  write_json(folder / "summary.json", {{"validation_loss", loss},
                                       {"train_loss", loss - 0.1},
                                       {"non_embedding_parameters", 803968},
                                       {"commit", "40108ba"}});
  write_json(folder / "diagnose.json",
             {{"attention", attention}, {"sequences", 4}, {"layers", layers(true)}});
  std::string lines;
  for (int step = 10; step <= 30; step += 10) {
    const double now = loss + 0.1 * (30 - step);
    for (const char* const type : {"train", "validation"})
      lines +=
          Json({{"type", type}, {"step", step}, {"tokens", 100 * step}, {"loss", now}}).dump() +
          "\n";
    lines += Json({{"type", "diagnose"},
                   {"step", step},
                   {"tokens", 100 * step},
                   {"layers", layers(false)}})
                 .dump() +
             "\n";
  }
  write(folder / "metrics.jsonl", lines);
}

void write_sweep(const fs::path& folder, const MadeSweep& made) {
  Json points = Json::array();
  for (const MadeSetting& setting : made.settings) {
    for (const char* const attention : {"standard", "exclusive"}) {
      for (const std::int64_t seed : made.seeds) {
        const std::string place =
            cat("points/", made.axis, "=", setting.value, ",attention=", attention, ",seed=", seed);
        const double margin = setting.margin + (seed % 2 == 1 ? 0.002 : -0.002);
        const double loss = setting.standard + 0.01 * static_cast<double>(seed);
        write_made_run(folder / place, attention, seed,
                       attention == std::string("standard") ? loss : loss - margin);
        points.push_back({{"labels", {{made.axis, setting.value}, {"attention", attention}}},
                          {"seed", seed},
                          {"folder", place},
                          {"status", "done"}});
      }
    }
  }
  write_json(folder / "sweep.json", {{"name", made.name},
                                     {"title", ""},
                                     {"figure", made.figure},
                                     {"axes",
                                      {{{"name", made.axis}, {"label", made.label}},
                                       {{"name", "attention"}, {"label", "attention"}}}},
                                     {"seeds", made.seeds},
                                     {"points", points}});
}

}  // namespace xsa::testing
