#include "xsa/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>
#include <system_error>
#include <vector>

#include "xsa/base/progress.h"
#include "xsa/base/signals.h"
#include "xsa/checkpoint/checkpoint.h"
#include "xsa/data/batch_reader.h"
#include "xsa/model/memory.h"
#include "xsa/op/threads.h"
#include "xsa/train/advice.h"
#include "xsa/train/batch.h"
#include "xsa/train/conditions.h"
#include "xsa/train/generator.h"
#include "xsa/train/metrics.h"
#include "xsa/train/optimizer.h"
#include "xsa/train/run_folder.h"
#include "xsa/train/standing.h"
#include "xsa/train/step_times.h"
#include "xsa/train/summary.h"
#include "xsa/train/tensor_data.h"
#include "xsa/train/tensorboard.h"
#include "xsa/train/validation.h"

namespace xsa::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One run. The constructor opens and makes all that can fail, and writes nothing into the folder.
class Run {
 public:
  Run(RunConfig config, fs::path folder, const TrainOptions& options);
  Json execute();
  const Json& conditions() const { return conditions_; }

 private:
  void restore(const checkpoint::Reader& reader);
  void run_to_the_end();
  void train_step();
  double forward_backward();
  void log(const Json& line);
  void log_train_line(double gradient_norm, double lr);
  void validate_here();
  void evaluate_here();
  void diagnose_here();
  void show_progress();
  void save();
  [[noreturn]] void stop(int signal);
  void require_finite(double value, const char* what, std::int64_t step) const;
  Standing now() const;

  std::int64_t step_tokens() const { return train::step_tokens(config_); }
  bool due(std::int64_t every) const {
    return standing_.step % every == 0 || standing_.step == config_.train.steps;
  }
  bool diagnosis_due() const {
    return options_.diagnose && config_.train.diagnose_every > 0 &&
           due(config_.train.diagnose_every);
  }
  double tokens_per_s() const { return static_cast<double>(step_tokens()) / step_times_.median(); }
  double elapsed() const { return standing_.elapsed_s + seconds_since(start_); }
  std::int64_t tensor_peak() const {
    return std::max(standing_.peak_tensor_bytes, model::peak_tensor_bytes() - tensor_bytes_before_);
  }

  RunConfig config_;
  fs::path folder_;
  const TrainOptions& options_;
  std::int64_t threads_, tensor_bytes_before_;
  data::Dataset dataset_;
  Json conditions_;
  data::TrainLoader loader_;  // where reading begins
  std::optional<data::BatchReader> reader_;
  model::Gpt model_;
  AdamW optimizer_;
  Batch batch_;
  Standing standing_;
  StepTimes step_times_;
  Json evaluations_ = Json::array();  // what options_.evaluate last gave
  double last_loss_ = 0;
  std::int64_t saved_step_ = -1;
  std::optional<MetricsFile> metrics_;
  std::optional<EventFile> events_;
  Progress progress_;
  Clock::time_point start_;
};

std::int64_t begin_counting_memory() {
  model::reset_peak_tensor_bytes();
  return model::tensor_bytes();
}

Run::Run(RunConfig config, fs::path folder, const TrainOptions& options)
    : config_(std::move(config)),
      folder_(std::move(folder)),
      options_(options),
      threads_(op::use_threads(config_.train.threads)),
      tensor_bytes_before_(begin_counting_memory()),
      dataset_(data::open_dataset(config_.data)),
      conditions_(train::conditions(config_, dataset_, options.measured)),
      loader_(dataset_.train.tokens, config_.train.batch_size, config_.model.context,
              static_cast<std::uint64_t>(config_.train.seed)),
      model_(config_.model, static_cast<std::uint64_t>(config_.train.seed)),
      optimizer_(model_.parameters(), config_.train),
      batch_(config_.train.batch_size, config_.model.context),
      progress_(options.label, config_.train.steps, "step") {
  seed_generator(static_cast<std::uint64_t>(config_.train.seed));
  standing_.data_sha256 = dataset_.sha256();
}

Json Run::execute() {
  const FolderLock lock(folder_, "xsa train");
  check_run_folder(folder_, options_.resume, options_.overwrite);  // again: now nobody interferes
  if (options_.overwrite) clear_run_folder(folder_);
  if (const fs::path root = folder_ / "checkpoints"; fs::exists(root / "LATEST"))
    restore(checkpoint::Reader(root));
  write_json_file(folder_ / "recipe.json", to_json(config_));
  metrics_.emplace(folder_ / "metrics.jsonl", standing_.metrics_offset);
  if (config_.train.tensorboard) events_.emplace(folder_ / kEventFile, standing_.events_offset);
  start_ = Clock::now();
  reader_.emplace(loader_, config_.data.read_ahead);
  run_to_the_end();
  Json result = summary(config_, now(), tokens_per_s());
  result["conditions"] = conditions_;
  if (!evaluations_.empty()) result["evaluations"] = evaluations_;
  progress_.finish();
  try {
    if (options_.at_end) result.update(options_.at_end(model_, dataset_));
  } catch (const Interrupted&) {  // the run goes on from its last checkpoint
    stop(stop_signal());
  }
  write_json_file(folder_ / "summary.json", result);
  return result;
}

void Run::restore(const checkpoint::Reader& reader) {
  check_same_recipe(reader.recipe(), to_json(config_), reader.folder().string());
  const Json& state = reader.state();
  check(state.contains("run") && state.contains("loader") && state.contains("step_seconds"),
        (reader.folder() / "state.json").string(),
        ": expected the tables run, loader and step_seconds, got ", state.dump());
  apply_json(standing_, state.at("run"), "run");
  check(standing_.data_sha256 == dataset_.sha256(), folder_.string(), ": the text of data.source '",
        config_.data.source, "' has changed since ", reader.folder().string(),
        " was saved; bring the old text back, or train anew with --overwrite, not with --resume");
  check_same_so_far(state.value("conditions", Json::object()), conditions_,
                    reader.folder().string());
  step_times_ = StepTimes(state.at("step_seconds").get<std::vector<double>>());
  evaluations_ = state.value("evaluations", Json::array());
  loader_.restore(state.at("loader"));
  for (const model::NamedTensor& parameter : model_.parameters())
    copy_to(reader.model().at(parameter.name), parameter.tensor);
  optimizer_.restore(reader.optimizer());
  const at::Tensor generator = generator_state();
  copy_to(reader.optimizer().at("torch_generator"), generator);
  set_generator_state(generator);
  last_loss_ = standing_.train_loss;
  saved_step_ = standing_.step;
  progress_.start_at(standing_.step);
  if (standing_.threads != threads_)
    progress_.print_line(cat(options_.label, ": ", threads_, " threads now, ", standing_.threads,
                             " before: the last bits may differ from an unbroken run's"));
}

/// What follows a step comes at the head of the loop, so that a resumed run enters where the
/// stopped one left: a validation that a signal cut short is made up for.
void Run::run_to_the_end() {
  const TrainConfig& config = config_.train;
  for (;;) {
    if (standing_.step > standing_.validated_step && due(config.eval_every)) validate_here();
    if (standing_.step == standing_.validated_step && standing_.step > standing_.evaluated_step)
      evaluate_here();
    if (standing_.step > standing_.diagnosed_step && diagnosis_due() && stop_signal() == 0)
      diagnose_here();
    if (const int signal = stop_signal()) stop(signal);
    if (standing_.step > 0 && due(config.checkpoint_every)) save();
    if (standing_.step == config.steps) return;
    train_step();
  }
}

void Run::train_step() {
  const TrainConfig& config = config_.train;
  const auto start = Clock::now();
  const std::int64_t step = standing_.step + 1;
  const double loss = forward_backward();
  require_finite(loss, "the loss", step);

  std::vector<at::Tensor> gradients;
  for (const model::NamedTensor& parameter : model_.parameters())
    gradients.push_back(parameter.tensor.grad());
  const double per_token = 1.0 / static_cast<double>(step_tokens());
  const double norm = per_token * l2_norm(gradients);
  require_finite(norm, "the gradient's norm", step);
  const bool clip = config.grad_clip > 0 && norm > config.grad_clip;
  {
    const at::NoGradGuard no_grad;
    at::_foreach_mul_(gradients, per_token * (clip ? config.grad_clip / norm : 1.0));
  }
  const double lr = learning_rate(config, standing_.step);
  optimizer_.update(lr);
  for (const model::NamedTensor& parameter : model_.parameters())
    parameter.tensor.mutable_grad().reset();

  standing_.step = step;
  standing_.loss_sum += loss;
  ++standing_.loss_steps;
  const double seconds = seconds_since(start);
  standing_.line_seconds += seconds;
  step_times_.add(seconds);
  if (options_.after_step) options_.after_step(step);
  if (due(config.log_every)) log_train_line(norm, lr);
  last_loss_ = loss;
  show_progress();
}

void Run::show_progress() {
  const std::string validation =
      standing_.validated_step > 0 ? cat("val ", fixed(standing_.validation_loss, 3), "  ") : "";
  progress_.update(standing_.step, cat("loss ", fixed(last_loss_, 3), "  ", validation,
                                       short_count(tokens_per_s()), " tokens/s"));
}

/// Gradients of the loss summed over every target of the step; returns the loss per target.
double Run::forward_backward() {
  double loss_sum = 0;
  for (std::int64_t pass = 0; pass < config_.train.accumulation; ++pass) {
    const double waited = reader_->waited_s();
    reader_->next(batch_.input_span(), batch_.target_span());
    standing_.line_wait_s += reader_->waited_s() - waited;
    const at::Tensor documents =
        batch_.documents(config_.train.batch_size, dataset_.train.document_opener);
    const at::Tensor loss =
        model_.loss_sum(batch_.inputs, batch_.targets, config_.train.loss_chunk, documents);
    loss.backward();
    loss_sum += loss.item<double>();
  }
  return loss_sum / static_cast<double>(step_tokens());
}

void Run::log(const Json& line) {
  metrics_->append(line);
  if (events_) events_->append(line);
}

void Run::log_train_line(double gradient_norm, double lr) {
  const auto steps = static_cast<double>(standing_.loss_steps);
  standing_.train_loss = standing_.loss_sum / steps;
  log({{"type", "train"},
       {"step", standing_.step},
       {"tokens", standing_.step * step_tokens()},
       {"loss", standing_.train_loss},
       {"lr", lr},
       {"grad_norm", gradient_norm},
       {"tokens_per_s", steps * static_cast<double>(step_tokens()) / standing_.line_seconds},
       {"data_wait_s", standing_.line_wait_s},
       {"elapsed_s", elapsed()}});
  standing_.data_wait_s += standing_.line_wait_s;
  standing_.loss_sum = standing_.line_seconds = standing_.line_wait_s = 0;
  standing_.loss_steps = 0;
}

/// Does nothing if a signal to stop cuts it short.
void Run::validate_here() {
  const auto found = validate(model_, dataset_.validation, config_.train);
  if (!found) return;
  require_finite(found->loss, "the validation loss", standing_.step);
  standing_.validated_step = standing_.step;
  standing_.validation_loss = found->loss;
  standing_.bits_per_byte = found->bits_per_byte;
  standing_.validation_rows = found->rows;
  log({{"type", "validation"},
       {"step", standing_.step},
       {"tokens", standing_.step * step_tokens()},
       {"loss", found->loss},
       {"bits_per_byte", found->bits_per_byte}});
  show_progress();
}

/// All lines or, if a signal to stop cuts it short, none: it is then made up for.
void Run::evaluate_here() {
  if (options_.evaluate) {
    progress_.update(standing_.step, "evaluating");
    const auto found = options_.evaluate(model_);
    if (!found) return;
    evaluations_ = *found;
    for (const Json& evaluation : *found) {
      Json line = {
          {"type", "eval"}, {"step", standing_.step}, {"tokens", standing_.step * step_tokens()}};
      line.update(evaluation);
      log(line);
    }
    show_progress();
  }
  standing_.evaluated_step = standing_.step;
}

/// Does nothing if a signal to stop cuts it short.
void Run::diagnose_here() {
  progress_.update(standing_.step, "diagnosing");
  const auto found = options_.diagnose(model_, dataset_);
  if (!found) return;
  Json line = {
      {"type", "diagnose"}, {"step", standing_.step}, {"tokens", standing_.step * step_tokens()}};
  line.update(*found);
  log(line);
  standing_.diagnosed_step = standing_.step;
  show_progress();
}

void Run::save() {
  if (saved_step_ == standing_.step) return;
  checkpoint::Contents contents{.step = standing_.step, .recipe = to_json(config_)};
  std::vector<at::Tensor> weights;
  for (const model::NamedTensor& parameter : model_.parameters()) {
    weights.push_back(parameter.tensor);
    contents.model.push_back(view_of(parameter.name, parameter.tensor));
  }
  require_finite(l2_norm(weights), "the norm of the weights", standing_.step);
  contents.optimizer = optimizer_.state();
  const at::Tensor generator = generator_state();
  contents.optimizer.push_back(view_of("torch_generator", generator));

  Standing now = this->now();
  now.metrics_offset = metrics_->sync();
  if (events_) now.events_offset = events_->sync();
  contents.state = {{"run", xsa::to_json(now)},
                    {"loader", reader_->state()},
                    {"step_seconds", step_times_.seconds()},
                    {"conditions", conditions_},
                    {"evaluations", evaluations_}};
  checkpoint::save(folder_ / "checkpoints", contents, config_.train.keep_checkpoints);
  saved_step_ = standing_.step;
}

void Run::stop(int signal) {
  save();
  progress_.finish();
  throw Interrupted(signal,
                    cat(folder_.string(), ": stopped by ", signal == SIGINT ? "SIGINT" : "SIGTERM",
                        " after step ", standing_.step, " of ", config_.train.steps,
                        "; its state is saved. ", how_to_continue(options_)));
}

void Run::require_finite(double value, const char* what, std::int64_t step) const {
  if (std::isfinite(value)) [[likely]]
    return;
  const auto newest = checkpoint::latest(folder_ / "checkpoints");
  throw Error(
      cat(folder_.string(), ": step ", step, " of ", config_.train.steps, ": ", what, " is ", value,
          ", expected a finite number. Nothing of this step was kept; last good checkpoint: ",
          newest ? newest->string() : "none yet", ". ", how_to_stay_finite(config_.train)));
}

Standing Run::now() const {
  Standing now = standing_;
  now.elapsed_s = elapsed();
  now.peak_tensor_bytes = tensor_peak();
  now.threads = threads_;
  return now;
}

}  // namespace

Json train(const RunConfig& wanted, const fs::path& run_folder, const TrainOptions& options) {
  const RunConfig config = resolve(wanted);
  check_run_folder(run_folder, options.resume, options.overwrite);
  const fs::path recipe = run_folder / "recipe.json";
  const bool resumes = options.resume && fs::exists(recipe);
  if (resumes) check_same_recipe(read_json_file(recipe), to_json(config), run_folder.string());
  Run run(config, run_folder, options);
  if (resumes && fs::exists(run_folder / "summary.json"))
    return finished_summary(run_folder, run.conditions());
  return run.execute();
}

}  // namespace xsa::train
