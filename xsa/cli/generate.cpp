#include "xsa/generate/generate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <sstream>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parallel.h"
#include "xsa/base/progress.h"
#include "xsa/base/signals.h"
#include "xsa/cli/command.h"
#include "xsa/generate/utf8_stream.h"
#include "xsa/load/load.h"
#include "xsa/op/threads.h"
#include "xsa/text/utf8.h"

namespace xsa::cli {

constexpr char kGenerateExamples[] = R"(Examples:
  xsa generate runs/demo/exclusive-seed1337 --prompt "KING: "
  xsa generate gpt2/ --prompt "Once upon a time" --top-k 40 --temperature 0.8
  xsa generate runs/first --prompts lines.txt --samples 3 --json
  echo -n "The answer is" | xsa generate gpt2/ --prompt-file - --temperature 0 --no-prompt

MODEL is a run, a checkpoint, or a GPT-2 in Hugging Face's format (config.json, model.safetensors). The text goes to
standard output as it comes, speed to standard error. Without a prompt a text is begun. The same seed gives the same
text, whatever else is generated beside it.)";

namespace {

using generate::Continuation;
using generate::GenerateConfig;
using text::Token;

struct GenerateOptions {
  std::string model, tokenizer, dtype = "float32";
  std::vector<std::string> prompts, prompt_files;
  std::string prompt_lines;
  std::int64_t threads = 0;
  bool no_prompt = false, json = false;
  std::vector<std::pair<std::string, std::unique_ptr<std::string>>> settings;  // of GenerateConfig
};

std::string flag_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

/// The settings, each refused by its flag's name.
GenerateConfig config_of(const GenerateOptions& options) {
  constexpr std::string_view kTable = "generate";
  GenerateConfig config;
  for (const auto& [key, text] : options.settings) {
    if (text->empty()) continue;
    try {
      apply_text(config, key, *text, std::string(kTable));
    } catch (const UsageError& error) {
      const std::string_view mistake = error.what();  // "generate.top_p: expected ..."
      throw UsageError(flag_of(key) + std::string(mistake.substr(kTable.size() + 1 + key.size())));
    }
  }
  return config;
}

std::vector<std::string> prompts_of(const GenerateOptions& options) {
  const auto from_input = std::ranges::count(options.prompt_files, "-");
  check_usage(from_input + (options.prompt_lines == "-") <= 1,
              "expected one reader of standard input (-) among --prompt-file and --prompts, got ",
              from_input + (options.prompt_lines == "-"), "; put the others into files");
  std::vector<std::string> prompts = options.prompts;
  for (const std::string& path : options.prompt_files)
    prompts.push_back(InputFile::open(path).read_all());
  if (!options.prompt_lines.empty()) {
    std::istringstream lines(InputFile::open(options.prompt_lines).read_all());
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      prompts.push_back(line);
    }
    check_usage(!prompts.empty(), options.prompt_lines, ": expected a prompt a line, got no line");
  }
  if (prompts.empty()) prompts.emplace_back();
  return prompts;
}

/// One text after the other, each as it comes: what another sequence says meanwhile waits.
class Printer {
 public:
  Printer(const text::Tokenizer& tokenizer, const std::vector<std::string>& prompts,
          const GenerateConfig& config, bool with_prompt)
      : tokenizer_(tokenizer),
        prompts_(prompts),
        samples_(static_cast<std::size_t>(config.samples)),
        with_prompt_(with_prompt),
        texts_(prompts.size() * samples_) {
    begin();
  }
  void token(std::size_t sequence, Token token) {
    texts_[sequence].waiting += tokenizer_.decode({token});
    if (sequence == current_) show();
  }
  void done(std::size_t sequence) {
    texts_[sequence].done = true;
    while (current_ < texts_.size() && texts_[current_].done) {
      show();
      print(stream_.finish() + "\n");
      ++current_;
      begin();
    }
  }
  /// The line of a text that was left unfinished.
  void leave() {
    if (current_ < texts_.size()) print(stream_.finish() + "\n");
  }

 private:
  struct Text {
    std::string waiting;
    bool done = false;
  };

  void begin() {
    if (current_ == texts_.size()) return;
    const std::size_t prompt = current_ / samples_;
    if (texts_.size() > 1)
      print(cat(current_ > 0 ? "\n" : "", "--- prompt ", prompt + 1, ", sample ",
                current_ % samples_ + 1, "\n"));
    if (with_prompt_) print(stream_.add(prompts_[prompt]));
    show();
  }
  void show() {
    print(stream_.add(texts_[current_].waiting));
    texts_[current_].waiting.clear();
  }
  static void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    flush_standard_output();
  }

  const text::Tokenizer& tokenizer_;
  const std::vector<std::string>& prompts_;
  std::size_t samples_;
  bool with_prompt_;
  std::vector<Text> texts_;
  std::size_t current_ = 0;
  generate::Utf8Stream stream_;
};

std::string rates(const generate::Timing& timing) {
  const auto rate = [](std::int64_t tokens, double seconds) {
    return short_count(seconds > 0 ? static_cast<double>(tokens) / seconds : 0);
  };
  return cat(timing.prompt_tokens, " tokens read, ",
             rate(timing.prompt_tokens, timing.prompt_seconds), " tokens/s; ", timing.new_tokens,
             " generated, ", rate(timing.new_tokens, timing.step_seconds), " tokens/s");
}

Json to_json(const GenerateOptions& options, const GenerateConfig& config,
             const text::Tokenizer& tokenizer, const std::vector<std::string>& prompts,
             const std::vector<std::vector<Token>>& ids, const std::vector<Continuation>& results,
             const generate::Timing& timing) {
  Json list = Json::array();
  for (const Continuation& each : results) {
    list.push_back({{"prompt", text::replace_broken(prompts[each.prompt])},
                    {"sample", each.sample},
                    {"text", text::replace_broken(tokenizer.decode(each.tokens))},
                    {"ending", generate::name_of(each.ending)},
                    {"prompt_tokens", ids[each.prompt]},
                    {"tokens", each.tokens}});
    if (config.log_probabilities) list.back()["log_probabilities"] = each.log_probabilities;
  }
  return {{"model", options.model},
          {"tokenizer", tokenizer.name()},
          {"dtype", options.dtype},
          {"settings", xsa::to_json(config)},
          {"continuations", list},
          {"prompt_tokens", timing.prompt_tokens},
          {"prompt_seconds", timing.prompt_seconds},
          {"new_tokens", timing.new_tokens},
          {"step_seconds", timing.step_seconds}};
}

void run(const GenerateOptions& options) {
  const GenerateConfig config = config_of(options);
  const std::vector<std::string> prompts = prompts_of(options);
  const std::int64_t threads = op::use_threads(options.threads);

  const load::Loaded loaded = load::load(options.model);
  const Warnings warnings;
  const auto tokenizer = load::tokenizer_of(loaded, options.tokenizer, warnings);
  std::vector<std::vector<Token>> ids(prompts.size());
  for (std::size_t n = 0; n < prompts.size(); ++n) tokenizer->encode(prompts[n], ids[n]);
  generate::check_prompts(ids, loaded.model.config().context, config);  // before the first shows
  const model::Decoder decoder(loaded.model,
                               options.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat);
  std::optional<Printer> printer;
  generate::Events events;
  events.stop = [] { return stop_signal() != 0; };
  if (!options.json) {
    printer.emplace(*tokenizer, prompts, config, !options.no_prompt);
    events.token = [&](std::size_t sequence, Token token) { printer->token(sequence, token); };
    events.done = [&](std::size_t sequence) { printer->done(sequence); };
  }
  generate::Timing timing;
  const std::vector<Continuation> results = generate::generate(
      decoder, {tokenizer->vocabulary_size(), tokenizer->end_of_text(), tokenizer->begin_of_text()},
      ids, config, events, &timing);
  if (stop_signal() != 0) {
    if (printer) printer->leave();
    throw Interrupted(stop_signal(), "stopped");
  }
  if (options.json) {
    Json json = to_json(options, config, *tokenizer, prompts, ids, results, timing);
    json["threads"] = threads;
    json["warnings"] = *warnings.list;
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::fprintf(stderr, "%s\n", rates(timing).c_str());
  }
}

}  // namespace

std::function<void()> declare_generate(CommandLine& command) {
  command.footer(kGenerateExamples);
  const auto options = std::make_shared<GenerateOptions>();
  command.add_option("model", options->model, "a run, a checkpoint, or a Hugging Face folder")
      ->required();
  command.add_option("--prompt", options->prompts, "what to continue; may be given several times");
  command.add_option("--prompt-file", options->prompt_files,
                     "a file that is one prompt; -: standard input");
  command.add_option("--prompts", options->prompt_lines,
                     "a file with a prompt a line; -: standard input");
  for (const FieldHelp& field : help_of<GenerateConfig>()) {
    std::string& text =
        *options->settings.emplace_back(field.name, std::make_unique<std::string>()).second;
    if (field.type == detail::type_name<bool>())
      command.add_flag_callback(flag_of(field.name), [&text] { text = "true"; }, field.help);
    else
      command.add_option(flag_of(field.name), text, field.help)->default_str(field.default_value);
  }
  command.add_option("--tokenizer", options->tokenizer,
                     "byte, gpt2, or a folder with a vocabulary; by default the model's own");
  command.add_option("--dtype", options->dtype, "of the weights: float32 or bfloat16")
      ->check(one_of_words({"float32", "bfloat16"}))
      ->default_str("float32");
  command
      .add_option("--threads", options->threads,
                  "CPU threads; 0: one for each core that the process may use")
      ->check(whole_number(0, kMostThreads));
  command.add_flag("--no-prompt", options->no_prompt, "print only what is new");
  command.add_flag("--json", options->json, "print texts, ids and timing as JSON, at the end");
  return [options] { run(*options); };
}

}  // namespace xsa::cli
