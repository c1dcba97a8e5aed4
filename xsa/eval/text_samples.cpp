#include "xsa/eval/text_samples.h"

#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/hash.h"
#include "xsa/data/text_file.h"
#include "xsa/tasks/encode.h"
#include "xsa/tasks/task.h"
#include "xsa/text/utf8.h"

namespace xsa::eval {
namespace {

/// The row of all texts together; a text of this name has its path for a name.
constexpr std::string_view kAllTexts = "all texts";

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
          .sha256 = sha256(std::as_bytes(std::span(text))),
          .windows = tasks::rolling_windows(ids, tokenizer.begin_of_text(), context)};
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
  text.sha256 = sha256(std::as_bytes(std::span(beginning)));
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
    if (is_task(texts[i].name) || texts[i].name == kAllTexts)
      texts[i].name = std::filesystem::absolute(texts[i].path).string();
    for (std::size_t j = 0; j < texts.size(); ++j) {
      if (i == j || texts[i].path.filename() != texts[j].path.filename()) continue;
      texts[i].name = texts[i].path.string();
    }
  }
  for (TextSamples& text : texts) text.name = text::replace_broken(text.name);  // goes into JSON
  return texts;
}

namespace {

void add_row(Json& summary, const std::string& name, const std::vector<std::string>& files,
             std::span<const tasks::RollingScore> scores) {
  const std::size_t count = scores.size();
  Json row = {{"name", name}, {"alias", name}, {"sample_len", count}};
  const Json metrics = tasks::rolling_metrics(scores);
  for (const auto& item : metrics.items()) {
    row[item.key() + ",none"] = item.value();
    row[item.key() + "_stderr,none"] = "N/A";
    summary["higher_is_better"][name][item.key()] = false;
  }
  summary["results"][name] = row;
  Json& config = summary["configs"][name];
  config["task"] = name;
  config["output_type"] = "loglikelihood_rolling";
  config["num_fewshot"] = 0;
  config["metadata"]["data_files"] = files;
  summary["versions"][name] = 0;
  summary["n-shot"][name] = 0;
  summary["n-samples"][name] = {{"original", count}, {"effective", count}};
}

}  // namespace

void add_texts(Json& summary, std::span<const TextSamples> texts,
               std::span<const double> log_likelihoods) {
  std::vector<tasks::RollingScore> scores;
  std::vector<std::string> files;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    scores.push_back({log_likelihoods[i], texts[i].words, texts[i].bytes});
    files.push_back(texts[i].path.string());
    add_row(summary, texts[i].name, {files.back()}, std::span(scores).last(1));
  }
  if (texts.size() > 1) add_row(summary, std::string(kAllTexts), files, scores);
}

}  // namespace xsa::eval
