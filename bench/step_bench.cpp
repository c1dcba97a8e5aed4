// A training step of the demo's model without its optimizer: forward, loss and backward. Standard
// and exclusive attention take turns, so that a busy machine slows both alike.
//
//   step_bench [ROUNDS [THREADS]]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "xsa/model/gpt.h"
#include "xsa/op/attention.h"

namespace {

using xsa::model::Gpt;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 12, kVocabulary = 256;

Gpt demo(const char* attention) {
  xsa::model::ModelConfig config;
  config.vocab_size = kVocabulary;
  config.attention = attention;
  return Gpt(config, 1337);
}

struct Times {
  std::vector<double> forward_ms, backward_ms, step_ms;
};

void step(const Gpt& model, const at::Tensor& tokens, const at::Tensor& targets, Times& times) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const Clock::time_point start = Clock::now();
  const at::Tensor loss = model.loss_sum(tokens, targets) / tokens.numel();
  const Clock::time_point middle = Clock::now();
  loss.backward();
  const Clock::time_point end = Clock::now();
  times.forward_ms.push_back(Milliseconds(middle - start).count());
  times.backward_ms.push_back(Milliseconds(end - middle).count());
  times.step_ms.push_back(Milliseconds(end - start).count());
  for (const auto& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void print(const Gpt& model, const Times& times, std::int64_t tokens) {
  const double step_ms = quantile(times.step_ms, 0.5);
  std::printf("%-9s  forward %6.1f ms  backward %6.1f ms  step %6.1f ms  %8.0f tokens/s\n",
              model.config().attention.c_str(), quantile(times.forward_ms, 0.5),
              quantile(times.backward_ms, 0.5), step_ms,
              1e3 * static_cast<double>(tokens) / step_ms);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 30;
  if (argc > 2) at::set_num_threads(std::max(1, std::atoi(argv[2])));
  const Gpt standard = demo("standard"), exclusive = demo("exclusive");
  at::manual_seed(1);
  const at::Tensor tokens =
      at::randint(kVocabulary, {kBatch, standard.config().context}, at::kLong);
  const at::Tensor targets = tokens.roll({-1}, {1});
  exclusive.hidden(tokens, [](const xsa::model::AttentionTrace& trace) {
    if (trace.layer > 0) return;
    const std::string backend =
        xsa::op::attention_backend(trace.q, trace.k, trace.v, {.is_causal = true});
    std::printf("%d threads, attention by %s\n", at::get_num_threads(), backend.c_str());
  });

  Times warm_up, standard_times, exclusive_times;
  for (int round = -3; round < rounds; ++round) {
    step(standard, tokens, targets, round < 0 ? warm_up : standard_times);
    step(exclusive, tokens, targets, round < 0 ? warm_up : exclusive_times);
  }
  print(standard, standard_times, tokens.numel());
  print(exclusive, exclusive_times, tokens.numel());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < standard_times.step_ms.size(); ++i)
    ratios.push_back(exclusive_times.step_ms[i] / standard_times.step_ms[i]);
  std::printf("exclusive takes %.3f of standard's time (quartiles %.3f to %.3f, %d rounds)\n",
              quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75), rounds);
}
