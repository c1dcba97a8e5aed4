#include "tests/support/made_comparison.h"

#include <cmath>
#include <fstream>
#include <random>

#include "xsa/base/error.h"
#include "xsa/base/json.h"

namespace xsa::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSteps = 300, kTokensPerStep = 3072;
constexpr double kStepSeconds = 0.145;

const Json kMachine = {{"cpu", "Example CPU @ 2.60GHz"},
                       {"cores", 2},
                       {"memory_bytes", 25276514304},
                       {"os", "Debian GNU/Linux 12"},
                       {"compiler", "g++ 12.2.0"}};

class MadeRun {
 public:
  MadeRun(const std::string& attention, std::int64_t seed, const MadeComparison& made)
      : attention_(attention),
        seed_(seed),
        noise_(static_cast<std::mt19937::result_type>(seed * 2 + (attention == "exclusive"))),
        gain_(attention == "exclusive" ? made.gain : 0),
        evaluated_(made.evaluated) {
    std::mt19937 shared(static_cast<std::mt19937::result_type>(seed));
    offset_ = 0.02 * std::normal_distribution<double>()(shared) + 0.004 * normal_(noise_);
  }

  Json recipe() const {
    return {{"model",
             {{"layers", 4},
              {"width", 128},
              {"heads", 4},
              {"head_dim", 32},
              {"context", 256},
              {"attention", attention_},
              {"exclusive_layers", "all"},
              {"strength", 1.0},
              {"position", "rope"}}},
            {"data", {{"source", "shakespeare"}, {"tokenizer", "byte"}}},
            {"train",
             {{"steps", kSteps},
              {"batch_size", 12},
              {"lr", 2e-3},
              {"warmup_steps", 30},
              {"seed", seed_}}}};
  }

  std::string metrics() {
    std::string lines;
    for (std::int64_t step = 10; step <= kSteps; step += 10) {
      const double loss = loss_at(step) + 0.03 * normal_(noise_);
      lines += Json({{"type", "train"},
                     {"step", step},
                     {"tokens", step * kTokensPerStep},
                     {"loss", loss - 0.05},
                     {"lr", 1e-3},
                     {"grad_norm", 0.8},
                     {"tokens_per_s", tokens_per_s()},
                     {"elapsed_s", kStepSeconds * static_cast<double>(step)}})
                   .dump() +
               "\n";
      if (step % 50 == 0) {
        lines += Json({{"type", "validation"},
                       {"step", step},
                       {"tokens", step * kTokensPerStep},
                       {"loss", loss_at(step)},
                       {"bits_per_byte", loss_at(step) / std::log(2.0)}})
                     .dump() +
                 "\n";
        for (const Json& evaluation : evaluations_at(step)) lines += evaluation.dump() + "\n";
      }
    }
    return lines;
  }

  Json evaluations_at(std::int64_t step) const {
    Json lines = Json::array();
    if (!evaluated_) return lines;
    const double loss = loss_at(step), bits = 1.1 * loss / std::log(2.0);
    const Json accuracy = {{"acc", 0.9 - 0.12 * loss}, {"acc_norm", 0.92 - 0.12 * loss}};
    const Json text = {{"word_perplexity", std::exp2(5 * bits)},
                       {"byte_perplexity", std::exp2(bits)},
                       {"bits_per_byte", bits}};
    for (const auto& [name, metrics] : {std::pair{"piqa", accuracy}, {"held_out.txt", text}})
      lines.push_back({{"type", "eval"},
                       {"step", step},
                       {"tokens", step * kTokensPerStep},
                       {"name", name},
                       {"metrics", metrics}});
    return lines;
  }

  Json summary() {
    const double loss = loss_at(kSteps);
    return {{"attention", attention_},
            {"seed", seed_},
            {"steps", kSteps},
            {"tokens", kSteps * kTokensPerStep},
            {"parameters", 836864},
            {"train_loss", loss - 0.05},
            {"validation_loss", loss},
            {"bits_per_byte", loss / std::log(2.0)},
            {"validation_rows", 64},
            {"tokens_per_s", tokens_per_s()},
            {"elapsed_s", kStepSeconds * kSteps},
            {"peak_tensor_bytes", exclusive() ? 152043520 : 151519232},
            {"threads", 2},
            {"machine", kMachine},
            {"date", "2026-11-29T19:04:43Z"},
            {"commit", "40108ba"}};
  }

  Json diagnose() {
    Json layers = Json::array();
    for (int layer = 0; layer < 4; ++layer) {
      const double depth = layer / 3.0, jitter = 0.01 * normal_(noise_);
      const double output = 0.22 + 0.25 * depth + jitter - (exclusive() ? 0.1 * depth : 0);
      layers.push_back({{"layer", layer},
                        {"strength", exclusive() ? 1.0 : 0.0},
                        {"value_cosine", 0.05 + 0.12 * depth + jitter},
                        {"attention_diagonal", 0.06 + 0.05 * depth + jitter},
                        {"output_value_cosine", output},
                        {"final_value_cosine", exclusive() ? 1e-9 : output}});
    }
    return {{"attention", attention_}, {"sequences", 64}, {"context", 256}, {"layers", layers}};
  }

 private:
  bool exclusive() const { return attention_ == "exclusive"; }
  double tokens_per_s() { return (exclusive() ? 20900 : 21300) + 5000 * offset_; }
  double loss_at(std::int64_t step) const {
    const double share = static_cast<double>(step) / kSteps;
    return 2.24 + offset_ + 1.4 * std::exp(-4.5 * share) - gain_ * share;
  }

  std::string attention_;
  std::int64_t seed_;
  std::mt19937 noise_;
  std::normal_distribution<double> normal_;
  double offset_, gain_;
  bool evaluated_;
};

/// Plain writes: nothing here has to survive a power cut, and syncing is slow.
void write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  check(static_cast<bool>(file << content), path.string(), ": cannot write");
}

void write(const fs::path& path, const Json& json) { write(path, json.dump(2) + "\n"); }

}  // namespace

void write_comparison(const fs::path& folder, const MadeComparison& made) {
  Json runs = Json::array(), seeds = Json::array(), recipe;
  for (const std::int64_t seed : made.seeds) {
    seeds.push_back(seed);
    for (const char* const attention : {"standard", "exclusive"}) {
      MadeRun run(attention, seed, made);
      const std::string name = cat(attention, "-seed", seed);
      if (recipe.is_null()) recipe = run.recipe();
      write(folder / name / "recipe.json", run.recipe());
      write(folder / name / "summary.json", run.summary());
      write(folder / name / "metrics.jsonl", run.metrics());
      if (made.diagnosed) write(folder / name / "diagnose.json", run.diagnose());
      runs.push_back({{"attention", attention}, {"seed", seed}, {"folder", name}});
    }
  }
  write(folder / "compare.json", Json{{"name", made.name},
                                      {"date", "2026-11-29T19:07:02Z"},
                                      {"machine", kMachine},
                                      {"commit", "40108ba"},
                                      {"recipe", recipe},
                                      {"seeds", seeds},
                                      {"runs", runs}});
}

}  // namespace xsa::testing
