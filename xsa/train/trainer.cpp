#include "xsa/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "xsa/base/signals.h"
#include "xsa/load/origin.h"
#include "xsa/op/threads.h"
#include "xsa/train/advice.h"
#include "xsa/train/conditions.h"
#include "xsa/train/generator.h"
#include "xsa/train/run.h"
#include "xsa/train/run_folder.h"
#include "xsa/train/tensor_data.h"
#include "xsa/train/validation.h"

namespace xsa::train {

namespace fs = std::filesystem;

namespace {

std::int64_t begin_counting_memory() {
  model::reset_peak_tensor_bytes();
  return model::tensor_bytes();
}

/// The data of a run that goes on is known by its hash. It lies where it lay, unless another place
/// is named now.
data::RecordedData open_data(const data::DataConfig& config,
                             const std::optional<checkpoint::Reader>& saved) {
  if (!saved) return {data::open_dataset(config), config};
  data::DataRecord record = data_record_of(saved->state());
  const Json before = saved->recipe().value("data", Json::object()).value("source", Json());
  if (before != config.source) record.location.clear();
  return data::open_recorded(
      config, record, saved->folder().string(),
      "Bring the old text back, or train anew with --overwrite, not with --resume");
}

}  // namespace

Run::Run(RunConfig config, fs::path folder, const TrainOptions& options,
         std::optional<checkpoint::Reader> saved)
    : config_(std::move(config)),
      folder_(std::move(folder)),
      options_(options),
      saved_(std::move(saved)),
      threads_(op::use_threads(config_.train.threads)),
      tensor_bytes_before_(begin_counting_memory()),
      data_(open_data(config_.data, saved_)),
      dataset_(data_.dataset),
      conditions_(train::conditions(config_, dataset_, options.measured)),
      loader_(dataset_.train.tokens, config_.train.batch_size, config_.model.context,
              static_cast<std::uint64_t>(config_.train.seed)),
      model_(config_.model, static_cast<std::uint64_t>(config_.train.seed)),
      optimizer_(model_.parameters(), config_.train),
      batch_(config_.train.batch_size, config_.model.context),
      progress_(options.label, config_.train.steps, "step") {
  seed_generator(static_cast<std::uint64_t>(config_.train.seed));
  if (saved_)
    restore();
  else
    begin();
  const data::DataRecord record = data::record_of(data_.config, dataset_);
  standing_.data_sha256 = record.sha256;
  standing_.data_location = record.location;
  standing_.data_cache = record.cache;
  if (!standing_.origin_sha256.empty()) conditions_[kOrigin] = standing_.origin_sha256;
}

/// The first weights: those of the seed, or of where the run comes from.
void Run::begin() {
  if (config_.train.from.empty()) return;
  const load::Begun begun = load::begin_with(model_, config_.train.from);
  standing_.origin_path = begun.path;
  standing_.origin_step = begun.step;
  standing_.origin_sha256 = begun.weights_sha256;
  progress_.print_line(cat(options_.label, ": begins with ", begun.text));
}

Json Run::execute() {
  outlive_closed_output();
  write_json_file(folder_ / "recipe.json", to_json(config_));
  metrics_.emplace(folder_ / "metrics.jsonl", standing_.metrics_offset);
  if (config_.train.tensorboard) events_.emplace(folder_ / kEventFile, standing_.events_offset);
  start_ = Clock::now();
  reader_.emplace(loader_, config_.data.read_ahead);
  // Whatever becomes of what it began with, the run can go on from here.
  if (standing_.step == 0 && !standing_.origin_path.empty()) save();
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

void Run::restore() {
  const checkpoint::Reader reader = *std::exchange(saved_, std::nullopt);
  check_same_recipe(reader.recipe(), to_json(config_), reader.folder().string());
  const Json& state = reader.state();
  check(state.contains("run") && state.contains("loader") && state.contains("step_seconds"),
        (reader.folder() / "state.json").string(),
        ": expected the tables run, loader and step_seconds, got ", state.dump());
  apply_json(standing_, state.at("run"), "run");
  const Json conditions = state.value("conditions", Json::object());
  settle_origin(conditions_, conditions);
  check_same_so_far(conditions, conditions_, reader.folder().string());
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
    save_if_asked();
    if (standing_.step > standing_.validated_step && due(config.eval_every)) validate_here();
    if (standing_.step == standing_.validated_step && standing_.step > standing_.evaluated_step)
      evaluate_here();
    if (standing_.step > standing_.diagnosed_step && diagnosis_due() && stop_signal() == 0)
      diagnose_here();
    if (const int signal = stop_signal()) stop(signal);
    if (standing_.step > 0 && (due(config.checkpoint_every) || is_best())) save();
    save_if_asked();
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

/// Before and behind what may take long: the machine may be taken away soon.
void Run::save_if_asked() {
  if (!take_save_request() || standing_.step == 0) return;
  save();
  progress_.print_line(cat(options_.label, ": saved after step ", standing_.step, " of ",
                           config_.train.steps, ", as SIGUSR1 asked; training goes on"));
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
  if (standing_.best_step == 0 || found->loss < standing_.best_validation_loss) {
    standing_.best_step = standing_.step;
    standing_.best_validation_loss = found->loss;
    saved_step_ = -1;  // what was saved of this step does not know it yet
  }
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
  if (config_.train.keep_best && standing_.best_step > 0) contents.best_step = standing_.best_step;
  checkpoint::save(folder_ / "checkpoints", contents, config_.train.keep_checkpoints);
  saved_step_ = standing_.step;
}

void Run::stop(int signal) {
  save();
  progress_.finish();
  throw Interrupted(signal, cat(folder_.string(), ": stopped by ", signal_name(signal),
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

Json train(const RunConfig& wanted, const fs::path& run_folder, const TrainOptions& options) {
  const RunConfig config = resolve(wanted);
  check_run_folder(run_folder, options.resume, options.overwrite);
  const fs::path recipe = run_folder / "recipe.json";
  const bool resumes = options.resume && fs::exists(recipe);
  if (resumes) check_same_recipe(read_json_file(recipe), to_json(config), run_folder.string());
  if (resumes && fs::exists(run_folder / "summary.json")) {
    const data::Dataset dataset = data::open_dataset(config.data);
    return finished_summary(run_folder, conditions(config, dataset, options.measured));
  }
  std::optional<FolderLock> lock;
  if (fs::exists(run_folder)) lock.emplace(run_folder, "xsa train");
  check_run_folder(run_folder, options.resume, options.overwrite);  // again: now nobody interferes
  std::optional<checkpoint::Reader> saved;
  if (options.resume)
    saved = checkpoint::newest_whole(run_folder / "checkpoints", [](const std::string& text) {
      std::fprintf(stderr, "xsa: warning: %s\n", text.c_str());
    });
  Run run(config, run_folder, options, std::move(saved));
  if (!lock) {
    lock.emplace(run_folder, "xsa train");
    check_run_folder(run_folder, false, options.overwrite);
  }
  if (options.overwrite) clear_run_folder(run_folder);
  return run.execute();
}

}  // namespace xsa::train
