#include "xsa/eval/text_samples.h"

#include <algorithm>
#include <array>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/data/text_file.h"
#include "xsa/tasks/encode.h"
#include "xsa/tasks/task.h"

namespace xsa::eval {
namespace {

TextSamples load_text(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                      std::int64_t context) {
  check(!std::filesystem::is_directory(path), path.string(),
        ": expected a text file, got a folder; name its files one by one");
  const std::string text = read_file(path);
  check(!text.empty(), path.string(), ": expected a text, got an empty file");
  data::TextCheck binary(path.string());
  binary.add(text);
  binary.finish();
  const std::vector<text::Token> ids = tasks::encode_text(tokenizer, text);
  return {.name = path.filename().string(),
          .path = path,
          .tokens = std::ssize(ids),
          .words = tasks::count_words(text),
          .bytes = std::ssize(text),
          .windows = tasks::rolling_windows(ids, tokenizer.end_of_text(), context)};
}

/// The text's beginning, as if it ended with its first `windows` windows.
void cut(TextSamples& text, std::size_t windows, const text::Tokenizer& tokenizer) {
  if (windows >= text.windows.size()) return;
  text.windows.resize(windows);
  std::vector<text::Token> ids;
  for (const tasks::Window& window : text.windows)
    ids.insert(ids.end(), window.predicted.begin(), window.predicted.end());
  const std::string beginning = tokenizer.decode(ids);
  text.tokens = std::ssize(ids);
  text.words = tasks::count_words(beginning);
  text.bytes = std::ssize(beginning);
}

}  // namespace

std::vector<TextSamples> load_texts(const std::vector<std::string>& paths,
                                    const text::Tokenizer& tokenizer, std::int64_t context,
                                    std::optional<std::int64_t> limit) {
  std::vector<TextSamples> texts;
  for (const std::string& path : paths) {
    check_usage(std::count(paths.begin(), paths.end(), path) == 1, "--text: '", path,
                "' is given twice");
    texts.push_back(load_text(path, tokenizer, context));
    if (limit) cut(texts.back(), static_cast<std::size_t>(*limit), tokenizer);
  }
  const auto is_task = [](const std::string& name) {
    return std::ranges::any_of(tasks::all_tasks(),
                               [&](const tasks::Task& task) { return task.name == name; });
  };
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (is_task(texts[i].name)) texts[i].name = std::filesystem::absolute(texts[i].path).string();
    for (std::size_t j = 0; j < texts.size(); ++j) {
      if (i == j || texts[i].path.filename() != texts[j].path.filename()) continue;
      texts[i].name = texts[i].path.string();
    }
  }
  return texts;
}

void add_text(Json& summary, const TextSamples& text, double log_likelihood) {
  const std::array score = {tasks::RollingScore{log_likelihood, text.words, text.bytes}};
  Json row = {{"name", text.name}, {"alias", text.name}, {"sample_len", 1}};
  const Json metrics = tasks::rolling_metrics(score);
  for (const auto& item : metrics.items()) {
    row[item.key() + ",none"] = item.value();
    row[item.key() + "_stderr,none"] = "N/A";
    summary["higher_is_better"][text.name][item.key()] = false;
  }
  summary["results"][text.name] = row;
  Json& config = summary["configs"][text.name];
  config["task"] = text.name;
  config["output_type"] = "loglikelihood_rolling";
  config["num_fewshot"] = 0;
  config["metadata"]["data_files"] = Json::array({text.path.string()});
  summary["versions"][text.name] = 0;
  summary["n-shot"][text.name] = 0;
  summary["n-samples"][text.name] = {{"original", 1}, {"effective", 1}};
}

}  // namespace xsa::eval
