#include "xsa/study/plan.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "xsa/base/error.h"
#include "xsa/base/progress.h"
#include "xsa/base/suggest.h"
#include "xsa/model/gpt.h"

namespace xsa::study {
namespace {

constexpr double kTera = 1e12;
constexpr double kLeast = 1e-6;  // share of a peak, or 10^12 FLOPs a second: no time is infinite
constexpr double kSafeShare = 0.95;    // of a device's memory: libraries and fragments take some
constexpr double kTrainingFactor = 3;  // backward takes twice the forward's FLOPs

const Gpu& find_gpu(const std::string& name) {
  std::vector<std::string> names;
  std::string known, lower = name;
  std::transform(name.begin(), name.end(), lower.begin(), ::tolower);
  for (const Gpu& gpu : gpus()) {
    if (gpu.name == lower) return gpu;
    names.emplace_back(gpu.name);
    known += (known.empty() ? "" : ", ") + names.back();
  }
  throw UsageError(cat("--gpu: expected one of ", known, ", got '", name, "'",
                       did_you_mean(name, names), "; --peak-tflops takes any other device"));
}

template <class... Values>
std::string format(const char* text, const Values&... values) {
  char line[256];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

std::string with_commas(std::int64_t value) {
  return value < 1000
             ? format("%d", static_cast<int>(value))
             : cat(with_commas(value / 1000), ",", format("%03d", static_cast<int>(value % 1000)));
}

std::string in_words(double value) {
  return value >= 1e12  ? format("%.4g trillion", value / 1e12)
         : value >= 1e9 ? format("%.4g billion", value / 1e9)
         : value >= 1e6 ? format("%.4g million", value / 1e6)
                        : short_count(value);
}

std::string counted(std::int64_t count, const char* noun, const char* nouns) {
  return cat(count, " ", count == 1 ? noun : nouns);
}

/// "2.3 days" where "55 hours" would make one count.
std::string duration(double hours) {
  constexpr double kDay = 24, kYear = 365 * kDay;
  if (hours < 1.0 / 60) return format("%.2g seconds", hours * 3600);
  if (hours < 1) return format("%.3g minutes", hours * 60);
  if (hours < 2 * kDay) return format("%.3g hours", hours);
  return hours < 2 * kYear ? format("%.1f days", hours / kDay)
                           : format("%.3g years", hours / kYear);
}

/// Beyond these, counts of tokens and bytes would overflow.
void check_countable(const train::RunConfig& config) {
  constexpr double kMost = 1e17;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double tokens = training_tokens(config);
  check_usage(tokens < kMost, "plan: expected less than ", kMost, " tokens of training, got ",
              tokens, "; lower train.steps, train.accumulation, train.batch_size or model.context");
  const model::ModelConfig& model = config.model;
  const double widths = real(model.width) + real(model.inner_width()) + real(model.gated_norm) +
                        real((model.heads + model.key_heads()) * model.head_dim);
  const double pass = real(config.train.batch_size) * real(model.context);
  const double floats = 16 * pass * real(model.layers) * widths;  // more than any step holds
  check_usage(floats < kMost, "plan: expected less than ", kMost,
              " activations of a pass, got about ", floats,
              "; lower train.batch_size, model.context or the model's sizes");
}

std::string bytes(double value) { return short_bytes(value); }
std::string bytes(std::int64_t value) { return short_bytes(static_cast<double>(value)); }

/// "H100", or "device" where none is named.
std::string device_name(const Plan& plan) {
  if (!plan.device_memory_bytes) return "device";
  std::string name = plan.devices.gpu;
  std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  return name;
}

std::string on_devices(const Plan& plan) {
  return cat(plan.devices.count, " ", device_name(plan), plan.devices.count == 1 ? "" : "s");
}

std::string line(const char* label, const auto&... parts) {
  return cat(format("%-15s", label), parts...);
}

void add_verdict(const Plan& plan, std::vector<std::string>& lines) {
  if (!plan.device_memory_bytes) return;
  const double share = static_cast<double>(plan.memory.total()) / *plan.device_memory_bytes;
  const bool close = share > kSafeShare && share <= 1;
  lines.push_back(line("",
                       share > 1 ? "MORE THAN"
                       : close   ? "TOO CLOSE TO"
                                 : "within",
                       " the ", bytes(*plan.device_memory_bytes), " of one ", device_name(plan),
                       close ? ": libraries and fragments take some as well" : ""));
}

std::string speed(const Plan& plan) {
  return cat(format(" at %g %% of %g TFLOP/s", 100 * plan.devices.mfu, plan.peak_tflops),
             plan.device_memory_bytes ? cat(" (", kPrecision, ")") : "");
}

}  // namespace

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> known = {
      {"a100", 156, 80}, {"h100", 494.7, 80}, {"h200", 494.7, 141}, {"b200", 1125, 180}};
  return known;
}

double training_tokens(const train::RunConfig& config) {
  return static_cast<double>(config.train.batch_size) * static_cast<double>(config.model.context) *
         static_cast<double>(config.train.accumulation) * static_cast<double>(config.train.steps);
}

double SweepPlan::device_hours() const {
  double hours = 0;
  for (const Point& point : points)
    hours += static_cast<double>(seeds * point.plan.devices.count) * point.plan.hours();
  return hours;
}

const SweepPlan::Point& SweepPlan::largest() const {
  return *std::ranges::max_element(points, {},
                                   [](const Point& point) { return point.plan.memory.total(); });
}

double Plan::hours() const {
  const double flops_per_s = static_cast<double>(devices.count) * peak_tflops * kTera * devices.mfu;
  return flops() / flops_per_s / 3600;
}

Plan plan(const train::RunConfig& recipe, const Devices& devices) {
  const train::RunConfig config = train::resolve(recipe);
  check_countable(config);
  check_usage(devices.mfu >= kLeast && devices.mfu <= 1, "--mfu: expected a share in (0, 1], got ",
              devices.mfu);
  const double peak = devices.peak_tflops.value_or(1);
  check_usage(peak >= kLeast && peak < 1 / kLeast, "--peak-tflops: expected a number in [", kLeast,
              ", ", 1 / kLeast, "), in 10^12 FLOPs a second, got ", peak);
  check_usage(devices.count >= 1 && config.train.accumulation % devices.count == 0,
              "--gpus: expected a divisor of train.accumulation = ", config.train.accumulation,
              ", the passes of a step that devices share, got ", devices.count,
              "; raise train.accumulation and lower train.batch_size by the same factor");

  Plan result;
  const model::ModelCount count = model::count(config.model);
  result.parameters = count.parameters;
  result.non_embedding_parameters = count.non_embedding_parameters;
  result.forward_flops_per_token = count.forward_flops_per_token;
  result.training_flops_per_token = kTrainingFactor * count.forward_flops_per_token;
  result.steps = config.train.steps;
  result.sequences_per_step = config.train.batch_size * config.train.accumulation;
  result.context = config.model.context;

  result.devices = devices;
  if (devices.peak_tflops) {
    result.peak_tflops = *devices.peak_tflops;
  } else {
    const Gpu& gpu = find_gpu(devices.gpu);
    result.peak_tflops = gpu.peak_tflops;
    result.devices.gpu = gpu.name;
    result.device_memory_bytes = gpu.memory_gb * 1e9;
  }
  result.load = {.rows = config.train.batch_size,
                 .passes = config.train.accumulation / devices.count,
                 .loss_chunk = config.train.loss_chunk};
  result.memory = training_memory(config.model, result.load);
  const auto n = static_cast<double>(devices.count);
  result.traffic_bytes_per_step =
      2 * (n - 1) / n * sizeof(float) * static_cast<double>(count.parameters);
  return result;
}

SweepPlan plan(const Sweep& sweep, const Devices& devices) {
  Sweep once = sweep;
  once.seeds.resize(1);
  std::vector<SweepPoint> points = first_points(once);
  const auto later = later_points(once, [](const SweepPoint&) { return std::nullopt; });
  points.insert(points.end(), later.begin(), later.end());

  SweepPlan result{.seeds = static_cast<std::int64_t>(sweep.seeds.size())};
  for (const SweepPoint& point : points) {
    const std::string name = point.name();
    SweepPlan::Point& added = result.points.emplace_back();
    added.name = name.substr(0, name.rfind(",seed="));
    try {
      added.plan = plan(run_config(once, point), devices);
    } catch (const UsageError& error) {
      throw UsageError(cat(added.name, ": ", error.what()));
    }
  }
  return result;
}

Json to_json(const Plan& plan) {
  const TrainingMemory& memory = plan.memory;
  Json json = {{"parameters", plan.parameters},
               {"non_embedding_parameters", plan.non_embedding_parameters},
               {"forward_flops_per_token", plan.forward_flops_per_token},
               {"training_flops_per_token", plan.training_flops_per_token},
               {"steps", plan.steps},
               {"tokens_per_step", plan.tokens_per_step()},
               {"tokens", plan.tokens()},
               {"flops", plan.flops()},
               {"memory_bytes",
                {{"total", memory.total()},
                 {"weights", memory.weights},
                 {"gradients", memory.gradients},
                 {"optimizer", memory.optimizer},
                 {"activations", memory.activations},
                 {"logits", memory.logits},
                 {"other", memory.other}}},
               {"most_logits_bytes", memory.most_logits},
               {"gpus", plan.devices.count},
               {"sequences_per_pass", plan.load.rows},
               {"passes", plan.load.passes},
               {"traffic_bytes_per_step", plan.traffic_bytes_per_step},
               {"peak_tflops", plan.peak_tflops},
               {"mfu", plan.devices.mfu},
               {"hours", plan.hours()}};
  if (plan.device_memory_bytes) {
    json["gpu"] = plan.devices.gpu;
    json["peak_precision"] = kPrecision;
    json["device_memory_bytes"] = *plan.device_memory_bytes;
  }
  return json;
}

Json to_json(const SweepPlan& plan) {
  Json points = Json::array();
  for (const SweepPlan::Point& point : plan.points)
    points.push_back({{"name", point.name}, {"plan", to_json(point.plan)}});
  return {{"trainings", static_cast<std::int64_t>(plan.points.size()) * plan.seeds},
          {"seeds", plan.seeds},
          {"most_memory_bytes", plan.largest().plan.memory.total()},
          {"device_hours", plan.device_hours()},
          {"points", points}};
}

std::vector<std::string> lines(const Plan& plan) {
  const auto number = [](auto value) { return in_words(static_cast<double>(value)); };
  const TrainingMemory& memory = plan.memory;
  const std::int64_t devices = plan.devices.count;
  std::vector<std::string> result;
  const auto add = [&](const char* label, const auto&... parts) {
    result.push_back(line(label, parts...));
  };
  add("parameters", number(plan.parameters), ", of them ", number(plan.non_embedding_parameters),
      " not of embeddings");
  add("FLOPs a token", number(plan.forward_flops_per_token), " forward, ",
      number(plan.training_flops_per_token), " with backward");
  add("tokens", number(plan.tokens()), ": ", with_commas(plan.steps), " steps of ",
      plan.sequences_per_step, " sequences of ", plan.context,
      format("; %.3g FLOPs", plan.flops()));
  add("memory", bytes(memory.total()), " a device, in fp32, ",
      counted(plan.load.passes, "pass", "passes"), " of ",
      counted(plan.load.rows, "sequence", "sequences"), " a step");
  add("", "weights ", bytes(memory.weights), ", gradients ", bytes(memory.gradients),
      ", optimizer ", bytes(memory.optimizer));
  add("", "activations ", bytes(memory.activations), ", other ", bytes(memory.other), ", logits ",
      bytes(memory.most_logits), memory.logits == memory.most_logits ? "" : " at another moment");
  add_verdict(plan, result);
  if (devices == 1) {
    add("traffic", "none: one device");
  } else {
    add("traffic", bytes(plan.traffic_bytes_per_step), " a step, sent and received by each of ",
        devices, " devices (fp32 gradients, ring)");
  }
  add("time", duration(plan.hours()), " on ", on_devices(plan), speed(plan));
  return result;
}

std::vector<std::string> lines(const SweepPlan& plan) {
  std::size_t width = 0;
  double tokens = 0;
  for (const SweepPlan::Point& point : plan.points) {
    width = std::max(width, point.name.size());
    tokens += static_cast<double>(plan.seeds) * point.plan.tokens();
  }
  std::vector<std::string> result;
  for (const SweepPlan::Point& point : plan.points)
    result.push_back(format("%-*s  %10s a device  %12s", static_cast<int>(width),
                            point.name.c_str(), bytes(point.plan.memory.total()).c_str(),
                            duration(point.plan.hours()).c_str()));
  result.emplace_back();

  const SweepPlan::Point& largest = plan.largest();
  const auto trainings = static_cast<std::int64_t>(plan.points.size()) * plan.seeds;
  result.push_back(line("trainings", trainings, ", each on ", on_devices(largest.plan), "; ",
                        in_words(tokens), " tokens together"));
  result.push_back(line("memory", "at most ", bytes(largest.plan.memory.total()),
                        " a device, in fp32: ", largest.name));
  add_verdict(largest.plan, result);
  const double hours = plan.device_hours();
  result.push_back(line("time",
                        hours < 1000 ? format("%.3g", hours) : with_commas(std::llround(hours)),
                        " ", device_name(largest.plan), " hours together", speed(largest.plan)));
  return result;
}

}  // namespace xsa::study
