#include "xsa/bench/block.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "xsa/base/error.h"
#include "xsa/base/parallel.h"
#include "xsa/base/progress.h"
#include "xsa/base/signals.h"
#include "xsa/base/system.h"
#include "xsa/model/gpt.h"
#include "xsa/model/memory.h"
#include "xsa/op/threads.h"

namespace xsa::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kVocabulary = 256;  // the embedding only makes the block's input

at::ScalarType scalar_type(const std::string& type) {
  if (type == "float32") return at::kFloat;
  if (type == "bfloat16") return at::kBFloat16;
  throw UsageError(cat("--dtype: expected float32 or bfloat16, got '", type, "'"));
}

model::ModelConfig model_config(const BlockConfig& config, std::int64_t length,
                                const char* attention) {
  model::ModelConfig result;
  result.layers = 1;
  result.width = config.width;
  result.heads = config.heads;
  result.head_dim = config.head_dim;
  result.context = length;
  result.vocab_size = kVocabulary;
  result.attention = attention;
  result.embedding_norm = false;
  return result;
}

/// A block, its input, and the gradient that comes back to it.
class Block {
 public:
  Block(const BlockConfig& config, std::int64_t length, const char* attention)
      : own_bytes_(-model::tensor_bytes()), gpt_(model_config(config, length, attention), 1) {
    for (const model::NamedTensor& parameter : gpt_.parameters()) {
      const at::Tensor& tensor = parameter.tensor;
      tensor.set_data(tensor.to(scalar_type(config.type)));
    }
    own_bytes_ += model::tensor_bytes();
  }

  /// The output; its gradients are the parameters'.
  at::Tensor run(const at::Tensor& tokens, const at::Tensor& gradient) const {
    if (!gradient.defined()) {
      const at::NoGradGuard no_grad;
      return gpt_.hidden(tokens);
    }
    for (const model::NamedTensor& parameter : gpt_.parameters())
      parameter.tensor.mutable_grad().reset();
    const at::Tensor out = gpt_.hidden(tokens);
    out.backward(gradient);
    return out.detach();
  }

  /// Of weights and all that a call takes beyond them.
  std::int64_t peak_bytes(const at::Tensor& tokens, const at::Tensor& gradient) const {
    release();
    model::reset_peak_tensor_bytes();
    const std::int64_t before = model::tensor_bytes();
    run(tokens, gradient);
    return model::peak_tensor_bytes() - before + own_bytes_;
  }

  /// The output, after it and the gradients were seen to be finite.
  at::Tensor checked_run(const at::Tensor& tokens, const at::Tensor& gradient,
                         const std::string& what) const {
    const auto finite = [&](const at::Tensor& tensor, const std::string& name) {
      check(at::isfinite(tensor).all().item<bool>(), "bench block: ", what, ": ", name,
            " has values that are not finite; the times mean nothing");
    };
    at::Tensor out = run(tokens, gradient);
    finite(out, "the output");
    if (gradient.defined())
      for (const model::NamedTensor& parameter : gpt_.parameters())
        finite(parameter.tensor.grad(), "the gradient of " + parameter.name);
    release();
    return out;
  }

 private:
  void release() const {
    for (const model::NamedTensor& parameter : gpt_.parameters())
      parameter.tensor.mutable_grad().reset();
  }

  std::int64_t own_bytes_;
  model::Gpt gpt_;
};

double seconds_of(std::int64_t calls, const auto& call) {
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(calls);
}

/// {"median", "quartiles": [lower, upper]}, between the values next to their places.
Json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at_share = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - std::floor(place));
  };
  return {{"median", at_share(0.5)}, {"quartiles", {at_share(0.25), at_share(0.75)}}};
}

class Measurement {
 public:
  Measurement(const BlockConfig& config, const BlockProgress& progress)
      : config_(config), progress_(progress) {}

  Json run() {
    Json results = Json::array();
    for (const std::int64_t length : config_.lengths)
      for (const char* mode : {"forward", "forward+backward"})
        results.push_back(measure(length, mode));
    return results;
  }

 private:
  Json measure(std::int64_t length, const std::string& mode) {
    const std::string what = cat("length ", length, ", ", mode);
    const std::array<Block, 2> blocks = {Block(config_, length, "standard"),
                                         Block(config_, length, "exclusive")};
    const auto shape = {config_.batch, length};
    const at::Tensor tokens = at::arange(config_.batch * length, at::kLong)
                                  .mul_(7919)
                                  .remainder_(kVocabulary)
                                  .view(shape);
    at::Tensor gradient;
    if (mode != "forward")
      gradient = at::sin(at::arange(config_.batch * length * config_.width, at::kFloat))
                     .view({config_.batch, length, config_.width})
                     .to(scalar_type(config_.type));
    const auto call = [&](std::size_t i) { return [&, i] { blocks[i].run(tokens, gradient); }; };

    std::array<std::int64_t, 2> peaks{};
    for (std::size_t i : {0, 1}) {
      call(i)();  // kernels choose their code and memory is touched
      peaks[i] = blocks[i].peak_bytes(tokens, gradient);
    }
    const double once = seconds_of(1, call(0));
    const auto calls = std::max<std::int64_t>(1, std::llround(config_.round_s / (4 * once)));
    std::array<std::vector<double>, 2> rates;
    std::vector<double> ratios;
    for (std::int64_t round = 0; round < config_.rounds; ++round) {
      if (const int signal = stop_signal()) throw Interrupted(signal, "bench block: stopped");
      std::array<double, 2> seconds{};
      for (const std::size_t i : {0, 1, 1, 0}) seconds[i] += seconds_of(calls, call(i)) / 2;
      for (const std::size_t i : {0, 1})
        rates[i].push_back(static_cast<double>(config_.batch * length) / seconds[i]);
      ratios.push_back(seconds[1] / seconds[0]);
      if (progress_.update) progress_.update(++done_, total(), what);
    }
    check(!at::equal(blocks[0].checked_run(tokens, gradient, what),
                     blocks[1].checked_run(tokens, gradient, what)),
          "bench block: ", what,
          ": the output is the same with XSA and without, so one of the two "
          "was measured twice");
    const auto figures = [&](std::size_t i) -> Json {
      return {{"tokens_per_s", spread(rates[i])}, {"peak_bytes", peaks[i]}};
    };
    return {{"length", length},
            {"mode", mode},
            {"standard", figures(0)},
            {"exclusive", figures(1)},
            {"time_ratio", spread(ratios)},
            {"memory_ratio", static_cast<double>(peaks[1]) / static_cast<double>(peaks[0])},
            {"rounds", config_.rounds}};
  }

  std::int64_t total() const {
    return 2 * config_.rounds * static_cast<std::int64_t>(config_.lengths.size());
  }

  const BlockConfig& config_;
  const BlockProgress& progress_;
  std::int64_t done_ = 0;
};

void validate(const BlockConfig& config) {
  constexpr std::int64_t kMaxRounds = 1'000'000;
  constexpr double kMaxNumbers = 1e15;  // of the input: its sizes do not overflow
  scalar_type(config.type);
  check_usage(!config.lengths.empty(), "--lengths: expected one or more, as 512,1024");
  for (auto length = config.lengths.begin(); length != config.lengths.end(); ++length) {
    check_usage(*length >= 2, "--lengths: expected lengths of at least 2, got ", *length);
    check_usage(std::find(config.lengths.begin(), length, *length) == length,
                "--lengths: expected different ones, got ", *length, " twice");
    model_config(config, *length, "exclusive").validate();
    const double numbers = static_cast<double>(config.batch) * static_cast<double>(*length) *
                           static_cast<double>(config.width);
    check_usage(numbers < kMaxNumbers, "--batch: expected an input of less than ", kMaxNumbers,
                " numbers, got batch ", config.batch, " x length ", *length, " x width ",
                config.width);
  }
  const auto in = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    check_usage(value >= least && value <= most, name, ": expected a whole number in [", least,
                ", ", most, "], got ", value);
  };
  in("--batch", config.batch, 1, std::numeric_limits<std::int64_t>::max());
  in("--rounds", config.rounds, 1, kMaxRounds);
  in("--threads", config.threads, 0, kMostThreads);
}

}  // namespace

Json measure_block(const BlockConfig& config, const BlockProgress& progress) {
  validate(config);
  const std::int64_t threads = op::use_threads(config.threads);
  return {{"what", "one block, attention and feed-forward layer: XSA against standard attention"},
          {"date", utc_now()},
          {"machine", machine_info()},
          {"commit", build_commit()},
          {"batch", config.batch},
          {"type", config.type},
          {"width", config.width},
          {"heads", config.heads},
          {"head_dim", config.head_dim},
          {"threads", threads},
          {"results", Measurement(config, progress).run()}};
}

std::string block_table(const Json& result) {
  constexpr std::int64_t kBar = 24;
  const auto figure = [](const Json& of, const char* name) { return of.at(name).get<double>(); };
  const auto print = [](const char* format, const auto&... values) {
    char line[256];
    std::snprintf(line, sizeof line, format, values...);
    return std::string(line);
  };
  double fastest = 0;
  for (const Json& each : result.at("results"))
    for (const char* attention : {"standard", "exclusive"})
      fastest = std::max(fastest, figure(each.at(attention).at("tokens_per_s"), "median"));

  const auto rounds = result.at("results").at(0).at("rounds").get<std::int64_t>();
  std::string text =
      cat("One block of width ", result.at("width"), ", ", result.at("heads"), " heads of ",
          result.at("head_dim"), "; batch ", result.at("batch"), ", ",
          result.at("type").get<std::string>(), ", ", result.at("threads"),
          result.at("threads") == 1 ? " thread" : " threads", "; medians and quartiles of ", rounds,
          rounds == 1 ? " round\n\n" : " rounds\n\n");
  text += print("%6s  %-16s  %-9s  %-*s  %10s  %10s\n", "length", "", "", static_cast<int>(kBar),
                "", "tokens/s", "peak");
  for (const Json& each : result.at("results")) {
    for (const char* attention : {"standard", "exclusive"}) {
      const bool first = std::string_view(attention) == "standard";
      const Json& of = each.at(attention);
      const double rate = figure(of.at("tokens_per_s"), "median");
      const auto filled = static_cast<std::int64_t>(std::lround(rate / fastest * kBar));
      std::string bar;
      for (std::int64_t i = 0; i < kBar; ++i) bar += i < filled ? "█" : " ";
      text += first ? print("%6lld  %-16s", static_cast<long long>(each.at("length")),
                            each.at("mode").get<std::string>().c_str())
                    : std::string(24, ' ');
      text += print("  %-9s  %s  %10s  %10s\n", attention, bar.c_str(), short_count(rate).c_str(),
                    short_bytes(figure(of, "peak_bytes")).c_str());
    }
    const Json& ratio = each.at("time_ratio");
    text += print("%26stime x %.4f (%.4f to %.4f), memory x %.4f\n", "", figure(ratio, "median"),
                  ratio.at("quartiles").at(0).get<double>(),
                  ratio.at("quartiles").at(1).get<double>(), figure(each, "memory_ratio"));
  }
  return text;
}

}  // namespace xsa::bench
