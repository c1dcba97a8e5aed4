#include "xsa/study/sweep.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <list>
#include <map>
#include <set>
#include <thread>

#include "xsa/base/error.h"
#include "xsa/base/owned_folder.h"
#include "xsa/base/parse_json.h"
#include "xsa/base/progress.h"
#include "xsa/base/signals.h"
#include "xsa/base/system.h"
#include "xsa/study/child.h"
#include "xsa/study/evaluation.h"
#include "xsa/study/run_state.h"
#include "xsa/study/same_conditions.h"
#include "xsa/train/run_folder.h"

namespace xsa::study {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPollEvery{100};
constexpr char kSweepCommand[] = "xsa sweep";

/// A point and how far it is: an element of sweep.json's "points".
struct Task {
  SweepPoint point;
  std::int64_t steps = 0, done = 0;
  std::string status = "waiting", error;
  double loss = 0;  // the newest
};

class Runner {
 public:
  Runner(const Sweep& sweep, fs::path folder, const SweepOptions& options)
      : sweep_(sweep), folder_(std::move(folder)), options_(options) {}

  Json run() {
    // All that can be refused comes first, and touches nothing.
    check_kind(folder_, FolderKind::kSweep);
    same_.emplace(folder_, sweep_.base.run.data.source);
    want(first_points(sweep_));
    const FolderLock lock(folder_, kSweepCommand);
    check_kind(folder_, FolderKind::kSweep);  // again: now nobody interferes
    outlive_closed_output();
    open_folder();
    record_ = {{"name", fs::absolute(folder_).lexically_normal().filename().string()},
               {"title", sweep_.title},
               {"figure", sweep_.figure},
               {"date", utc_now()},
               {"machine", machine_info()},
               {"commit", build_commit()},
               {"recipe", to_json(sweep_.base)},
               {"axes", Json::array()},
               {"seeds", sweep_.seeds}};
    for (const SweepAxis& axis : sweep_.axes) {
      Json values = Json::array();
      for (const SweepValue& value : axis.values) values.push_back(value.label);
      record_["axes"].push_back({{"name", axis.name}, {"label", axis.label}, {"values", values}});
    }

    add(first_points(sweep_));
    write();  // first, since it says what the folder is
    write_json_file(folder_ / "recipe.json", record_["recipe"]);
    const std::size_t later =
        later_points(sweep_, [](const SweepPoint&) { return std::nullopt; }).size();
    progress_.emplace("sweep", total_steps(later), "step");
    progress_->start_at(done_steps());
    run_round();
    const auto others =
        later_points(sweep_, [&](const SweepPoint& point) { return loss_of(point); });
    want(others);
    add(others);
    write();
    run_round();
    progress_->finish();
    check_same_conditions();
    return record_;
  }

 private:
  fs::path folder_of(const SweepPoint& point) const { return folder_ / "points" / point.name(); }
  bool can_be_trained(const SweepPoint& point) const {
    return point.labels.size() == sweep_.axes.size();
  }

  /// Notes the conditions of each point. A text or a task's records that cannot be read are refused
  /// here; a point that cannot be trained for other reasons fails later, alone.
  void want(const std::vector<SweepPoint>& points) {
    std::map<std::string, data::Dataset> datasets;
    std::map<std::string, Measuring> measurings;
    for (const SweepPoint& point : points) {
      if (!can_be_trained(point)) continue;
      Recipe recipe = sweep_.base;
      recipe.run = run_config(sweep_, point);
      try {
        recipe.run = train::resolve(recipe.run);
      } catch (const UsageError&) {
        continue;
      }
      const std::string source = xsa::to_json(recipe.run.data).dump();
      auto dataset = datasets.find(source);
      if (dataset == datasets.end())
        dataset = datasets.emplace(source, data::open_dataset(recipe.run.data)).first;
      const std::string hash = dataset->second.sha256();
      check(texts_.emplace(source, hash).first->second == hash, folder_.string(), ": '",
            recipe.run.data.source, "' changed while the sweep ran; bring the old text back, or ",
            "train all anew with --overwrite");
      const train::TrainConfig& train = recipe.run.train;
      const std::string asked =
          Json{recipe.run.data.tokenizer, recipe.run.model.context, train.eval_texts,
               train.eval_tasks,          train.eval_task_data,     train.eval_limit}
              .dump();
      auto measuring = measurings.find(asked);
      if (measuring == measurings.end()) measuring = measurings.emplace(asked, recipe).first;
      try {
        same_->want(point.name(), recipe.run, dataset->second, measuring->second.conditions());
      } catch (const UsageError&) {  // no row of this length fits into the text
      }
    }
  }

  /// Leaves a folder that is this sweep's: new, or holding an earlier part of it.
  void open_folder() const {
    if (options_.overwrite) return clear_points();
    const fs::path file = folder_ / "sweep.json";
    if (!fs::exists(file)) return;
    const Json before = try_parse_json(read_file(file));
    check(
        before.is_object() && before.value("recipe", Json()).is_object() &&
            before["recipe"].contains("diagnose"),
        file.string(),
        ": expected what xsa sweep wrote, found something else; --overwrite begins the sweep anew");
    std::fprintf(stderr,
                 "%s holds this sweep: continuing it, finished points are kept (--overwrite starts "
                 "anew)\n",
                 folder_.c_str());
  }

  /// Removes the runs of all points, also of those that this sweep no longer has, and nothing else,
  /// once nobody works in any of them.
  void clear_points() const {
    std::error_code none;
    std::vector<fs::path> runs;
    for (const fs::directory_entry& point : fs::directory_iterator(folder_ / "points", none))
      if (!point.is_symlink() && point.is_directory() && kind_of(point) == FolderKind::kRun)
        runs.push_back(point.path());
    {
      std::list<FolderLock> locks;
      for (const fs::path& run : runs) locks.emplace_back(run, kSweepCommand);
      for (const fs::path& run : runs) train::clear_run_folder(run);
    }
    for (const fs::path& run : runs) {
      fs::remove(run / ".lock", none);
      fs::remove(run, none);  // unless others keep files there
    }
  }

  void add(const std::vector<SweepPoint>& points) {
    for (const SweepPoint& point : points) {
      Task task{.point = point, .steps = sweep_.base.run.train.steps};
      const fs::path folder = folder_of(point);
      if (!can_be_trained(point)) {
        task.status = "failed";
        task.error = cat("no value of ", sweep_.reuse_best->of, " was trained with ",
                         "every seed, so that none is the best");
      } else {
        const train::RunConfig config = run_config(sweep_, point);
        task.steps = config.train.steps;
        take_newest(task);
        if (has_ended(task) && task.status == "done") task.done = task.steps;
        std::vector<Difference> found;
        try {
          if (task.status != "failed") found = same_->differences_of(point.name(), folder);
          if (task.status == "waiting" && fs::exists(folder / "recipe.json"))
            tell_of_other_threads(read_json_file(folder / "recipe.json"), threads_of(config));
        } catch (const Error& error) {
          task.error = cat(error.what(), "; remove ", folder.string(),
                           ", and the same command trains the point anew");
          task.status = "failed";
          task.done = 0;
        }
        same_->refuse(point.name(), found);
      }
      tasks_.push_back(std::move(task));
    }
  }

  /// What its process has written last.
  void take_newest(Task& task) const {
    const auto newest = newest_of(folder_of(task.point));
    if (!newest) return;
    task.done = newest->step;
    task.loss = newest->loss;
  }

  /// Whether a run is finished, or finished and broken since: then the point has failed.
  bool has_ended(Task& task) const {
    try {
      if (!summary_of(folder_of(task.point))) return false;
      task.status = "done";
    } catch (const Error& error) {
      task.status = "failed";
      task.error = error.what();
    }
    return true;
  }

  void write() {
    Json points = Json::array();
    for (const Task& task : tasks_) {
      points.push_back({{"labels", task.point.labels},
                        {"settings", task.point.settings},
                        {"seed", task.point.seed},
                        {"folder", "points/" + task.point.name()},
                        {"status", task.status}});
      if (!task.error.empty()) points.back()["error"] = task.error;
    }
    record_["points"] = points;
    write_json_file(folder_ / "sweep.json", record_);
  }

  std::optional<double> loss_of(const SweepPoint& point) const {
    try {
      const auto summary = summary_of(folder_of(point));
      if (summary) return summary->at("validation_loss").get<double>();
    } catch (const Error&) {  // the point has failed with this error
    }
    return std::nullopt;
  }

  /// What was trained just now may have found another text than the others.
  void check_same_conditions() const {
    for (const Task& task : tasks_)
      if (task.status == "done")
        same_->refuse(task.point.name(),
                      same_->differences_of(task.point.name(), folder_of(task.point)));
  }

  std::int64_t total_steps(std::size_t later) const {
    std::int64_t sum = static_cast<std::int64_t>(later) * sweep_.base.run.train.steps;
    for (const Task& task : tasks_) sum += task.steps;
    return sum;
  }
  std::int64_t done_steps() const {
    std::int64_t sum = 0;
    for (const Task& task : tasks_) sum += task.done;
    return sum;
  }

  std::vector<std::string> words_for(const SweepPoint& point) const {
    std::vector<std::string> words = {"train",    (folder_ / "recipe.json").string(),
                                      "--output", (folder_ / "points").string(),
                                      "--name",   point.name(),
                                      "--resume"};
    for (const auto& [name, value] : point.settings.items())
      words.push_back(
          cat("--", name, "=", value.is_string() ? value.get<std::string>() : value.dump()));
    words.push_back(cat("--train.seed=", point.seed));
    words.push_back(cat("--train.threads=", threads_of(run_config(sweep_, point))));
    return words;
  }

  std::int64_t threads_of(const train::RunConfig& config) const {
    if (config.train.threads > 0) return config.train.threads;
    return std::max<std::int64_t>(1, default_threads() / options_.jobs);
  }

  /// Once, for the first run that had another number.
  void tell_of_other_threads(const Json& saved, std::int64_t now) {
    const Json before = saved.value("train", Json::object()).value("threads", Json(now));
    if (before == now || told_of_threads_) return;
    told_of_threads_ = true;
    std::fprintf(
        stderr,
        "threads of a training: %s before, %lld now; what is not finished may end in other "
        "bits (--jobs as before keeps them)\n",
        before.dump().c_str(), static_cast<long long>(now));
  }

  struct Running {
    Task& task;
    Child child;
  };

  /// Trains what waits, `jobs` points at a time.
  void run_round() {
    std::list<Running> running;
    std::size_t next = 0;
    for (;;) {
      if (const int signal = stop_signal()) stop(running, signal);
      if (take_save_request())
        for (const Running& entry : running) entry.child.send(SIGUSR1);
      for (; running.size() < static_cast<std::size_t>(options_.jobs) && next < tasks_.size();
           ++next) {
        Task& task = tasks_[next];
        if (task.status != "waiting") continue;
        const fs::path log = folder_ / "logs" / (task.point.name() + ".log");
        running.push_back({task, Child(words_for(task.point), log)});
        task.status = "running";
        write();
      }
      if (running.empty()) return;
      std::this_thread::sleep_for(kPollEvery);
      for (auto entry = running.begin(); entry != running.end();) {
        take_newest(entry->task);
        const std::optional<int> code = entry->child.poll();
        if (code) finish(*entry, *code);
        entry = code ? running.erase(entry) : std::next(entry);
      }
      show(running);
    }
  }

  void finish(Running& ended, int code) {
    Task& task = ended.task;
    const std::string name = task.point.name();
    if (code == 0 && has_ended(task) && task.status == "done") {
      task.done = task.steps;
      progress_->print_line(
          cat(name, ": validation loss ", fixed(loss_of(task.point).value_or(NAN), 4)));
    } else {
      task.status = "failed";
      if (task.error.empty()) task.error = ended.child.error();
      if (task.error.empty())
        task.error = code > 128 ? cat("its process was ended by signal ", code - 128,
                                      code == 128 + SIGKILL ? ": too little memory?" : "")
                                : cat("its process ended with exit code ", code,
                                      "; its log has what it said");
      progress_->print_line(cat(name, ": failed: ", task.error));
    }
    write();
  }

  void show(const std::list<Running>& running) {
    std::string details = cat(count("done"), "/", tasks_.size(), " points");
    if (const auto failed = count("failed"); failed > 0) details += cat(" (", failed, " failed)");
    for (const Running& entry : running)
      if (entry.task.done > 0) details += cat("  loss ", fixed(entry.task.loss, 4));
    progress_->update(done_steps(), details);
  }

  [[noreturn]] void stop(std::list<Running>& running, int signal) {
    for (const Running& entry : running) entry.child.send(signal);
    for (Running& entry : running) {
      std::optional<int> code;
      while (!(code = entry.child.poll())) std::this_thread::sleep_for(kPollEvery);
      entry.task.status = *code == 0 ? "done" : "waiting";
    }
    write();
    progress_->finish();
    throw Interrupted(signal,
                      cat(folder_.string(), ": stopped; ", count("done"), " of ", tasks_.size(),
                          " points are done, the others saved what they ", "had. The same command ",
                          options_.overwrite ? "without --overwrite " : "", "continues"));
  }

  std::int64_t count(const std::string& status) const {
    return std::count_if(tasks_.begin(), tasks_.end(),
                         [&](const Task& task) { return task.status == status; });
  }

  const Sweep& sweep_;
  fs::path folder_;
  std::optional<SameConditions> same_;
  std::map<std::string, std::string> texts_;  // the hash of each text that was opened
  SweepOptions options_;
  Json record_;
  std::vector<Task> tasks_;
  std::optional<Progress> progress_;
  bool told_of_threads_ = false;
};

}  // namespace

Json sweep(const Sweep& wanted, const fs::path& folder, const SweepOptions& options) {
  return Runner(wanted, folder, options).run();
}

}  // namespace xsa::study
