#include "xsa/study/sweep.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <list>
#include <set>
#include <thread>

#include "xsa/base/error.h"
#include "xsa/base/parse_json.h"
#include "xsa/base/progress.h"
#include "xsa/base/signals.h"
#include "xsa/base/system.h"
#include "xsa/study/child.h"
#include "xsa/study/same_text.h"
#include "xsa/train/run_folder.h"

namespace xsa::study {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPollEvery{100};

/// A point and how far it is: an element of sweep.json's "points".
struct Task {
  SweepPoint point;
  std::int64_t steps = 0, done = 0;
  std::string status = "waiting", error;
  double loss = 0;  // the newest
};

/// How far the run of a folder is, from the end of its metrics.jsonl.
void read_newest(const fs::path& folder, Task& task) {
  std::FILE* const file = std::fopen((folder / "metrics.jsonl").c_str(), "rb");
  if (file == nullptr) return;
  char tail[4096];
  std::fseek(file, 0, SEEK_END);
  std::fseek(file, -std::min<long>(std::ftell(file), sizeof tail), SEEK_CUR);
  std::string text(tail, std::fread(tail, 1, sizeof tail, file));
  std::fclose(file);
  for (std::size_t end = text.rfind('\n'); end != std::string::npos && end > 0;) {
    const std::size_t begin = text.rfind('\n', end - 1);
    const Json line = try_parse_json(std::string_view(text).substr(begin + 1, end - begin - 1));
    const auto at = [&](const char* key) {
      return line.is_object() ? line.value(key, Json()) : Json();
    };
    if (at("type") == "train" && at("step").is_number_integer() && at("loss").is_number()) {
      task.done = at("step").get<std::int64_t>();
      task.loss = at("loss").get<double>();
      return;
    }
    end = begin;
  }
}

/// What a finished run says of itself; nothing where it has not ended.
std::optional<Json> summary_of(const fs::path& folder) {
  const fs::path path = folder / "summary.json";
  if (!fs::exists(path) || !fs::exists(folder / "recipe.json")) return std::nullopt;
  const Json summary = try_parse_json(read_file(path));
  check(summary.is_object() && summary.value("validation_loss", Json()).is_number() &&
            summary.value("data_sha256", Json()).is_string(),
        path.string(),
        ": expected a finished run's, with a number validation_loss and a text data_sha256, found "
        "none; remove it, and the run ends anew from its last checkpoint");
  return summary;
}

class Runner {
 public:
  Runner(const Sweep& sweep, fs::path folder, const SweepOptions& options)
      : sweep_(sweep), folder_(std::move(folder)), options_(options) {}

  Json run() {
    std::error_code error;
    fs::create_directories(folder_, error);
    check(!error, folder_.string(), ": cannot create folder: ", error.message());
    const train::FolderLock lock(folder_);
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
    write_json_file(folder_ / "recipe.json", record_["recipe"]);
    write();
    const std::size_t later =
        later_points(sweep_, [](const SweepPoint&) { return std::nullopt; }).size();
    progress_.emplace("sweep", total_steps(later), "step");
    progress_->start_at(done_steps());
    run_round();
    add(later_points(sweep_, [&](const SweepPoint& point) { return loss_of(point); }));
    write();
    run_round();
    progress_->finish();
    check_same_text();
    return record_;
  }

 private:
  fs::path folder_of(const SweepPoint& point) const { return folder_ / "points" / point.name(); }
  bool can_be_trained(const SweepPoint& point) const {
    return point.labels.size() == sweep_.axes.size();
  }

  /// Leaves a folder that is this sweep's: new, empty, or holding an earlier part of it.
  void open_folder() const {
    const fs::path file = folder_ / "sweep.json";
    if (!fs::exists(file)) {
      for (const auto& entry : fs::directory_iterator(folder_))
        check_usage(entry.path().filename() == ".lock", folder_.string(),
                    ": expected a new folder or one that xsa sweep made, found other files; "
                    "choose another --name");
      return;
    }
    if (options_.overwrite) return clear_points();
    Json before = try_parse_json(read_file(file));
    for (const char* key : {"recipe", "diagnose"})
      before = before.is_object() ? before.value(key, Json()) : Json();
    check(
        before.is_object(), file.string(),
        ": expected what xsa sweep wrote, found something else; --overwrite begins the sweep anew");
    Json saved = xsa::to_json(diagnose::DiagnoseConfig());  // an older one lacks newer settings
    saved.update(before);
    const auto changed = differences(xsa::to_json(sweep_.base.diagnose), saved);
    check_usage(changed.empty(), folder_.string(),
                ": its points were diagnosed with other settings (diagnose.",
                changed.empty() ? "" : changed.front(),
                "); choose another --name, or --overwrite to replace it");
    std::fprintf(stderr,
                 "%s holds this sweep: continuing it, finished points are kept (--overwrite starts "
                 "anew)\n",
                 folder_.c_str());
  }

  /// Removes the runs of all points, also of those that this sweep no longer has, and nothing else.
  void clear_points() const {
    std::error_code none;
    for (const auto& point : fs::directory_iterator(folder_ / "points", none)) {
      if (point.is_symlink() || !point.is_directory()) continue;
      train::clear_run_folder(point);
      fs::remove(point.path() / ".lock", none);
      fs::remove(point, none);  // unless others keep files there
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
        read_newest(folder, task);
        if (has_ended(task)) task.done = task.steps;
        if (fs::exists(folder / "recipe.json")) {
          const Json saved = read_json_file(folder / "recipe.json");
          train::check_same_recipe(saved, to_json(train::resolve(config)), folder.string());
          if (task.status == "waiting") tell_of_other_threads(saved, threads_of(config));
        }
      }
      tasks_.push_back(std::move(task));
    }
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

  /// Where no axis changes the data.
  void check_same_text() const {
    for (const SweepAxis& axis : sweep_.axes)
      for (const SweepValue& value : axis.values)
        for (const auto& [name, setting] : value.settings.items())
          if (name.starts_with("data.")) return;
    std::vector<TrainedText> texts;
    for (const Task& task : tasks_)
      if (task.status == "done")
        texts.push_back({task.point.name(), summary_of(folder_of(task.point))->at("data_sha256")});
    study::check_same_text(folder_, sweep_.base.run.data.source, texts);
  }

  std::int64_t total_steps(std::size_t later) const {
    std::int64_t sum = static_cast<std::int64_t>(later) * sweep_.base.run.train.steps;
    for (const Task& task : tasks_) sum += task.steps;
    return sum;
  }
  std::int64_t done_steps() const {
    std::int64_t sum = 0;
    for (const Task& task : tasks_) sum += task.status == "failed" ? task.steps : task.done;
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
        read_newest(folder_of(entry->task.point), entry->task);
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
    throw Interrupted(signal, cat(folder_.string(), ": stopped; ", count("done"), " of ",
                                  tasks_.size(), " points are done, the others saved what they ",
                                  "had. The same command continues"));
  }

  std::int64_t count(const std::string& status) const {
    return std::count_if(tasks_.begin(), tasks_.end(),
                         [&](const Task& task) { return task.status == status; });
  }

  const Sweep& sweep_;
  fs::path folder_;
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
