// What a recipe will cost, computed before anything runs: parameters, FLOPs, memory, traffic, time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/study/sweep_plan.h"
#include "xsa/study/training_memory.h"

namespace xsa::study {

/// A device by its maker's data sheet: memory, and dense matrix products of what lies in it, which
/// is fp32 as TrainingMemory counts it: those of TF32, half of bf16's.
inline constexpr char kPrecision[] = "TF32";
struct Gpu {
  const char* name;
  double peak_tflops;  // of kPrecision
  double memory_gb;    // 10^9 bytes
};
const std::vector<Gpu>& gpus();

/// All that a recipe trains on, as a number that no setting makes overflow.
double training_tokens(const train::RunConfig& config);

/// The devices a plan is for.
struct Devices {
  std::int64_t count = 1;
  std::string gpu = "h100";
  std::optional<double> peak_tflops;  // another device: no name, no memory
  double mfu = 0.4;                   // share of the peak that training's FLOPs reach
};

struct Plan {
  std::int64_t parameters = 0, non_embedding_parameters = 0;
  double forward_flops_per_token = 0, training_flops_per_token = 0;
  std::int64_t steps = 0, sequences_per_step = 0, context = 0;
  std::int64_t tokens_per_step() const { return sequences_per_step * context; }
  double tokens() const { return static_cast<double>(steps * tokens_per_step()); }
  double flops() const { return tokens() * training_flops_per_token; }

  Devices devices;
  double peak_tflops = 0;
  std::optional<double> device_memory_bytes;
  Load load;  // of one device
  TrainingMemory memory;
  /// What each device sends, and receives, to sum a step's gradients in a ring.
  double traffic_bytes_per_step = 0;
  double hours() const;
};

/// Checks the recipe as training does, and touches no file but its tokenizer's vocabulary. Throws
/// UsageError for a recipe that cannot train, and for devices that cannot share its passes evenly.
Plan plan(const train::RunConfig& recipe, const Devices& devices);

/// What the trainings of a sweep cost, each on all the devices.
struct SweepPlan {
  struct Point {
    std::string name;  // "length=512,attention=standard": seeds apart, which cost the same
    Plan plan;
  };
  std::vector<Point> points;
  std::int64_t seeds = 1;  // trainings of each point
  double device_hours() const;
  const Point& largest() const;  // that takes the most memory
};
/// As `plan` of every point. A best value that is reused is counted as the base recipe's.
SweepPlan plan(const Sweep& sweep, const Devices& devices);

Json to_json(const Plan& plan);
Json to_json(const SweepPlan& plan);
/// A line a figure, for people and for the heads of recipes.
std::vector<std::string> lines(const Plan& plan);
/// A line a point; then, behind an empty one, those of all together.
std::vector<std::string> lines(const SweepPlan& plan);

}  // namespace xsa::study
