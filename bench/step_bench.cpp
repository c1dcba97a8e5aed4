// A whole training step of the demo's model, and where its time goes: forward, loss and backward
// with standard and exclusive attention in turn, so that a busy machine slows both alike, then the
// whole step with its optimizer, operator by operator.
//
//   step_bench [--rounds=60] [--threads=N] [--label=NAME]   measures; with a label, the profile is
//                                                           added to results/step_profile_cpu.json
//   step_bench --page                                       writes its table into
//                                                           docs/performance.md
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "bench/operator_times.h"
#include "xsa/base/error.h"
#include "xsa/base/json.h"
#include "xsa/base/system.h"
#include "xsa/model/gpt.h"
#include "xsa/op/attention.h"
#include "xsa/op/threads.h"
#include "xsa/train/config.h"
#include "xsa/train/optimizer.h"

namespace {

using xsa::Json;
using xsa::model::Gpt;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 12, kVocabulary = 256;  // recipes/demo.toml
constexpr const char* kResults = "results/step_profile_cpu.json";
constexpr const char* kPage = "docs/performance.md";
constexpr const char* kBegin = "<!-- step: made by step_bench --page -->";
constexpr const char* kEnd = "<!-- end of step -->";

/// What the profile calls a piece, and the operators that make it. The first match counts.
struct Piece {
  const char* name;
  std::vector<std::string> operators;
};
const std::vector<Piece> kPieces = {
    {"matrix products", {"aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm"}},
    {"attention", {"xsa::attention", "xsa::attention_backward"}},
    {"GELU", {"aten::gelu", "aten::gelu_backward"}},
    {"residual sums and LayerNorm",
     {"xsa::add_layer_norm", "xsa::add_layer_norm_backward", "aten::native_layer_norm",
      "aten::native_layer_norm_backward", "aten::add_", "aten::add"}},
    {"RoPE and the cut into heads",
     {"xsa::rotary_embedding", "SplitHeads",
      "torch::autograd::CppNode<xsa::model::(anonymous namespace)::SplitHeads>", "aten::copy_"}},
    {"softmax and cross-entropy",
     {"aten::_log_softmax", "aten::gather", "aten::exp_", "aten::scatter_", "aten::expm1",
      "aten::sum", "aten::neg_", "aten::eq", "aten::clamp_min"}},
    {"AdamW, clipping and the gradient's norm",
     {"aten::_fused_adamw_", "aten::_foreach_mul_", "aten::mul_", "gradient norm"}},
    {"embedding", {"aten::embedding", "aten::index_select", "aten::embedding_dense_backward"}},
};
constexpr const char* kRest = "the rest: views, allocation, dispatch, the graph";

std::string piece_of(const std::string& name) {
  for (const Piece& piece : kPieces)
    if (std::count(piece.operators.begin(), piece.operators.end(), name)) return piece.name;
  return kRest;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Of all threads of the process, user mode.
double cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1e3 * static_cast<double>(usage.ru_utime.tv_sec) +
         1e-3 * static_cast<double>(usage.ru_utime.tv_usec);
}

Gpt demo(const char* attention) {
  xsa::model::ModelConfig config;
  config.vocab_size = kVocabulary;
  config.attention = attention;
  return Gpt(config, 1337);
}

struct Data {
  at::Tensor tokens, targets;  // [B, T]
};

void drop_gradients(const Gpt& model) {
  for (const auto& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
}

// ---- standard against exclusive

struct Times {
  std::vector<double> forward_ms, backward_ms, step_ms;
};

void pass(const Gpt& model, const Data& data, Times& times) {
  const Clock::time_point start = Clock::now();
  const at::Tensor loss = model.loss_sum(data.tokens, data.targets) / data.tokens.numel();
  times.forward_ms.push_back(milliseconds_since(start));
  const Clock::time_point middle = Clock::now();
  loss.backward();
  times.backward_ms.push_back(milliseconds_since(middle));
  times.step_ms.push_back(milliseconds_since(start));
  drop_gradients(model);
}

void print(const Gpt& model, const Times& times, std::int64_t tokens) {
  const double step_ms = quantile(times.step_ms, 0.5);
  std::printf("%-9s  forward %6.1f ms  backward %6.1f ms  both %6.1f ms  %8.0f tokens/s\n",
              model.config().attention.c_str(), quantile(times.forward_ms, 0.5),
              quantile(times.backward_ms, 0.5), step_ms,
              1e3 * static_cast<double>(tokens) / step_ms);
}

void compare(const Gpt& exclusive, const Data& data, int rounds) {
  const Gpt standard = demo("standard");
  Times warm_up, standard_times, exclusive_times;
  for (int round = -3; round < rounds; ++round) {
    pass(standard, data, round < 0 ? warm_up : standard_times);
    pass(exclusive, data, round < 0 ? warm_up : exclusive_times);
  }
  print(standard, standard_times, data.tokens.numel());
  print(exclusive, exclusive_times, data.tokens.numel());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < standard_times.step_ms.size(); ++i)
    ratios.push_back(exclusive_times.step_ms[i] / standard_times.step_ms[i]);
  std::printf("exclusive takes %.3f of standard's time (quartiles %.3f to %.3f, %d rounds)\n",
              quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75), rounds);
}

// ---- the profile

void train_step(const Gpt& model, const Data& data, xsa::train::AdamW& optimizer) {
  RECORD_USER_SCOPE("step");
  model.loss_sum(data.tokens, data.targets).backward();
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : model.parameters()) gradients.push_back(parameter.tensor.grad());
  double norm = 0;
  {
    RECORD_USER_SCOPE("gradient norm");
    norm = xsa::train::l2_norm(gradients);
  }
  {
    const at::NoGradGuard no_grad;
    at::_foreach_mul_(gradients, 1 / std::max(1.0, norm));
  }
  optimizer.update(1e-4);
  drop_gradients(model);
}

/// Medians over the steps: {"step_ms", "cpu_ms", "pieces": {name: ms}, "operators": {name: ms}}.
Json profile(const Gpt& model, const Data& data, int rounds) {
  xsa::train::AdamW optimizer(model.parameters(), {});
  std::vector<double> step_ms, user_ms;
  std::map<std::string, std::vector<double>> pieces, operators;
  xsa::bench::OperatorTimes times;
  for (int round = -3; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    const double user_before = cpu_ms();
    train_step(model, data, optimizer);
    const double elapsed = milliseconds_since(start), user = cpu_ms() - user_before;
    const auto own = times.take();
    if (round < 0) continue;
    step_ms.push_back(elapsed), user_ms.push_back(user);
    std::map<std::string, double> by_piece;
    for (const auto& [name, ms] : own) {
      by_piece[piece_of(name)] += ms;
      operators[name].push_back(ms);
    }
    for (const auto& [name, ms] : by_piece) pieces[name].push_back(ms);
  }
  Json result = {{"step_ms", quantile(step_ms, 0.5)},
                 {"step_ms_q1", quantile(step_ms, 0.25)},
                 {"step_ms_q3", quantile(step_ms, 0.75)},
                 {"cpu_ms", quantile(user_ms, 0.5)},
                 {"rounds", rounds},
                 {"date", xsa::utc_now()},
                 {"commit", xsa::build_commit()}};
  for (const auto& [name, ms] : pieces) result["pieces"][name] = quantile(ms, 0.5);
  for (const auto& [name, ms] : operators)
    if (const double median = quantile(ms, 0.5); median > 0.02) result["operators"][name] = median;
  return result;
}

std::vector<std::string> piece_names() {
  std::vector<std::string> names;
  for (const Piece& piece : kPieces) names.emplace_back(piece.name);
  names.emplace_back(kRest);
  return names;
}

void print(const Json& run) {
  const double step = run.at("step_ms");
  std::printf("the whole step: %.1f ms (quartiles %.1f to %.1f), %.1f ms of CPU time\n", step,
              run.at("step_ms_q1").get<double>(), run.at("step_ms_q3").get<double>(),
              run.at("cpu_ms").get<double>());
  for (const std::string& name : piece_names())
    std::printf("  %-50s %6.2f ms %5.1f %%\n", name.c_str(), run["pieces"].value(name, 0.0),
                100 * run["pieces"].value(name, 0.0) / step);
  std::vector<std::pair<double, std::string>> operators;
  for (const auto& [name, ms] : run.at("operators").items()) operators.emplace_back(ms, name);
  std::sort(operators.rbegin(), operators.rend());
  std::printf("its operators' own times:\n");
  for (const auto& [ms, name] : operators) std::printf("  %6.2f ms  %s\n", ms, name.c_str());
}

void add_to_results(const std::string& label, const Json& run) {
  Json results = std::filesystem::exists(kResults) ? xsa::read_json_file(kResults) : Json{};
  results["what"] = "a training step of the demo's model, medians over steps, own time by operator";
  results["machine"] = xsa::machine_info();
  results["threads"] = at::get_num_threads();
  results["runs"][label].push_back(run);
  xsa::write_json_file(kResults, results);
}

// ---- the page

double median_of(const Json& runs, const std::string& piece) {
  std::vector<double> values;
  for (const Json& run : runs)
    values.push_back(run.contains(piece) ? run.at(piece).get<double>()
                                         : run.at("pieces").value(piece, 0.0));
  return quantile(values, 0.5);
}

std::string table_of(const Json& results) {
  const Json &before = results.at("runs").at("before"), &after = results.at("runs").at("after");
  std::ostringstream out;
  char line[256];
  out << "| | before, ms | share | after, ms | share |\n| --- | --- | --- | --- | --- |\n";
  const double step_before = median_of(before, "step_ms"), step_after = median_of(after, "step_ms");
  const auto row = [&](const std::string& name, double ms_before, double ms_after) {
    std::snprintf(line, sizeof line, "| %s | %.2f | %.1f %% | %.2f | %.1f %% |\n", name.c_str(),
                  ms_before, 100 * ms_before / step_before, ms_after, 100 * ms_after / step_after);
    out << line;
  };
  for (const std::string& name : piece_names())
    row(name, median_of(before, name), median_of(after, name));
  row("**the step**", step_before, step_after);
  std::snprintf(line, sizeof line, "| CPU time of all threads | %.1f | | %.1f | |\n",
                median_of(before, "cpu_ms"), median_of(after, "cpu_ms"));
  out << line;
  const Json& machine = results.at("machine");
  out << "\nMeasured " << after.back().at("date").get<std::string>() << " on "
      << machine.at("cpu").get<std::string>() << ", " << results.at("threads").get<int>()
      << " threads; medians over " << before.size() << " runs before and " << after.size()
      << " after, in turn, of " << after.back().at("rounds").get<int>() << " steps each ("
      << kResults << ").\n";
  return out.str();
}

void write_page() {
  std::ifstream file(kPage);
  std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = page.find(kBegin), end = page.find(kEnd);
  xsa::check(begin != std::string::npos && end != std::string::npos, kPage, ": expected the lines ",
             kBegin, " and ", kEnd, "; run in the repository's root");
  page.replace(begin, end - begin, xsa::cat(kBegin, "\n", table_of(xsa::read_json_file(kResults))));
  std::ofstream(kPage) << page;
}

/// What follows "--NAME=" among the arguments, or `fallback`.
std::string option(int argc, char** argv, const std::string& name, const std::string& fallback) {
  for (int i = 1; i < argc; ++i)
    if (const std::string argument = argv[i]; argument.starts_with("--" + name + "="))
      return argument.substr(name.size() + 3);
  return fallback;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && std::string(argv[1]) == "--page") return write_page(), 0;
  const int rounds = std::max(1, std::atoi(option(argc, argv, "rounds", "60").c_str()));
  xsa::op::use_threads(std::max(0, std::atoi(option(argc, argv, "threads", "0").c_str())));
  const Gpt exclusive = demo("exclusive");
  at::manual_seed(1);
  Data data;
  data.tokens = at::randint(kVocabulary, {kBatch, exclusive.config().context}, at::kLong);
  data.targets = data.tokens.roll({-1}, {1});
  exclusive.hidden(data.tokens, [](const xsa::model::AttentionTrace& trace) {
    if (trace.layer > 0) return;
    const std::string backend =
        xsa::op::attention_backend(trace.q, trace.k, trace.v, {.is_causal = true});
    std::printf("%d threads, attention by %s\n", at::get_num_threads(), backend.c_str());
  });
  compare(exclusive, data, rounds);
  const Json run = profile(exclusive, data, rounds);
  print(run);
  if (const std::string label = option(argc, argv, "label", ""); !label.empty())
    add_to_results(label, run);
} catch (const std::exception& error) {
  std::fprintf(stderr, "step_bench: %s\n", error.what());
  return 1;
}
