#include "xsa/tasks/task.h"

#include <algorithm>
#include <sstream>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/tasks/hellaswag.h"
#include "xsa/text/case.h"

namespace xsa::tasks {
namespace {

constexpr std::string_view kDelimiter = " ";

/// One context, and each choice after it.
Question choose(const std::string& context, std::vector<std::string> texts, std::int64_t gold) {
  Question question{.gold = gold, .texts = std::move(texts)};
  for (const std::string& text : question.texts)
    question.choices.push_back({context, cat(kDelimiter, text)});
  return question;
}

std::int64_t gold_of(const Record& record, const Choices& choices, std::string_view key) {
  const auto place = std::find(choices.labels.begin(), choices.labels.end(), key);
  if (place == choices.labels.end())
    record.refuse("answerKey", cat("one of the choices' labels, ", Json(choices.labels).dump()),
                  std::string(key));
  return place - choices.labels.begin();
}

Question ask_arc(const Record& record) {
  const Choices choices = record.choices("choices");
  return choose(cat("Question: ", record.filled_text("question"), "\nAnswer:"), choices.texts,
                gold_of(record, choices, record.label("answerKey")));
}

Question ask_openbookqa(const Record& record) {
  const Choices choices = record.choices("choices");
  const std::string key = record.label("answerKey");
  return choose(record.filled_text("question_stem"), choices.texts,
                gold_of(record, choices, text::lstrip(key)));
}

/// SuperGLUE's label is 0 or 1; its JSON has booleans, Google's own files call it `answer`.
std::int64_t boolq_gold(const Record& record) {
  const std::string field = !record.has("label") && record.has("answer") ? "answer" : "label";
  const std::string label = record.label(field);
  if (label == "1" || label == "true" || label == "True") return 1;
  if (label == "0" || label == "false" || label == "False") return 0;
  record.refuse(field,
                label == "-1" ? "0 or 1 (a test split, whose answers are kept secret?)"
                              : "0 or 1, false or true",
                label);
}

Question ask_boolq(const Record& record) {
  return choose(cat(record.filled_text("passage"), "\nQuestion: ", record.filled_text("question"),
                    "?\nAnswer:"),
                {"no", "yes"}, boolq_gold(record));
}

Question ask_hellaswag(const Record& record) {
  const std::string query =
      clean_hellaswag(cat(record.text("activity_label"), ": ", record.text("ctx_a"), " ",
                          text::capitalize(record.text("ctx_b"))));
  std::vector<std::string> endings = record.texts("endings", 4);
  for (std::string& ending : endings) ending = clean_hellaswag(ending);
  Question question = choose(query, endings, record.label_index("label", {"0", "1", "2", "3"}));
  question.added = {{"query", query}, {"choices", endings}, {"gold", question.gold}};
  return question;
}

Question ask_lambada(const Record& record) {
  const std::string& text = record.filled_text("text");
  const std::size_t space = text.rfind(' ');
  const bool one_word = space == std::string::npos;
  const std::string word = one_word ? text : text.substr(space + 1);
  Question question = choose(one_word ? "" : text.substr(0, space), {word}, 0);
  question.target = question.choices.front().continuation;
  return question;
}

Question ask_piqa(const Record& record) {
  return choose(cat("Question: ", record.filled_text("goal"), "\nAnswer:"),
                {record.text("sol1"), record.text("sol2")},
                record.label_index("label", {"0", "1"}));
}

Question ask_social_iqa(const Record& record) {
  return choose(
      cat("Q: ", record.filled_text("context"), " ", record.filled_text("question"), "\nA:"),
      {record.text("answerA"), record.text("answerB"), record.text("answerC")},
      record.label_index("label", {"1", "2", "3"}));
}

/// The options go into the context; what follows the blank is scored after each.
Question ask_winogrande(const Record& record) {
  const std::string& sentence = record.filled_text("sentence");
  const std::size_t blank = sentence.find('_');
  if (blank == std::string::npos) record.refuse("sentence", "a text with a blank, _", sentence);
  Question question{.gold = record.label_index("answer", {"1", "2"})};
  question.target = text::strip(std::string_view(sentence).substr(blank + 1));
  for (const char* field : {"option1", "option2"}) {
    question.texts.push_back(sentence.substr(0, blank) + record.filled_text(field));
    question.choices.push_back({question.texts.back(), cat(kDelimiter, question.target)});
  }
  return question;
}

std::vector<Task> make_tasks() {
  const auto acc = Metric::kAccuracy, norm = Metric::kNormalizedAccuracy;
  const auto perplexity = Metric::kPerplexity;
  return {
      {.name = "arc_easy",
       .dataset = "allenai/ai2_arc",
       .config = "ARC-Easy",
       .split = "test",
       .published = 2376,
       .metrics = {acc, norm},
       .customary = acc,
       .fields = {"question", "choices", "answerKey"},
       .ask = ask_arc},
      {.name = "boolq",
       .version = 2,
       .dataset = "aps/super_glue",
       .config = "boolq",
       .split = "validation",
       .published = 3270,
       .metrics = {acc},
       .customary = acc,
       .fields = {"passage", "question", "label"},
       .aliases = {"super_glue", "google/boolq"},
       .ask = ask_boolq},
      {.name = "hellaswag",
       .dataset = "Rowan/hellaswag",
       .split = "validation",
       .published = 10042,
       .metrics = {acc, norm},
       .customary = norm,
       .fields = {"activity_label", "ctx_a", "ctx_b", "endings", "label"},
       .ask = ask_hellaswag},
      {.name = "lambada_openai",
       .dataset = "EleutherAI/lambada_openai",
       .config = "default",
       .split = "test",
       .published = 5153,
       .metrics = {perplexity, acc},
       .customary = acc,
       .fields = {"text"},
       .ask = ask_lambada},
      {.name = "lambada_standard",
       .dataset = "cimec/lambada",
       .split = "test",
       .published = 5153,
       .metrics = {perplexity, acc},
       .customary = acc,
       .fields = {"text"},
       .ask = ask_lambada},
      {.name = "openbookqa",
       .dataset = "allenai/openbookqa",
       .config = "main",
       .split = "test",
       .published = 500,
       .metrics = {acc, norm},
       .customary = norm,
       .fields = {"question_stem", "choices", "answerKey"},
       .ask = ask_openbookqa},
      {.name = "piqa",
       .dataset = "baber/piqa",
       .split = "validation",
       .published = 1838,
       .metrics = {acc, norm},
       .customary = acc,
       .fields = {"goal", "sol1", "sol2", "label"},
       .aliases = {"ybisk/piqa"},
       .ask = ask_piqa},
      {.name = "social_iqa",
       .version = 0,
       .dataset = "lighteval/siqa",
       .split = "validation",
       .published = 1954,
       .metrics = {acc},
       .customary = acc,
       .fields = {"context", "question", "answerA", "answerB", "answerC", "label"},
       .aliases = {"allenai/social_i_qa"},
       .ask = ask_social_iqa},
      {.name = "winogrande",
       .dataset = "allenai/winogrande",
       .config = "winogrande_xl",
       .split = "validation",
       .published = 1267,
       .metrics = {acc},
       .customary = acc,
       .fields = {"sentence", "option1", "option2", "answer"},
       .ask = ask_winogrande},
  };
}

}  // namespace

std::string metric_name(Metric metric) {
  switch (metric) {
    case Metric::kAccuracy:
      return "acc";
    case Metric::kNormalizedAccuracy:
      return "acc_norm";
    case Metric::kPerplexity:
      return "perplexity";
  }
  throw Error("metric_name: not a metric");
}

const std::vector<Task>& all_tasks() {
  static const std::vector<Task> tasks = make_tasks();
  return tasks;
}

const Task& find_task(const std::string& name) {
  std::vector<std::string> names;
  for (const Task& task : all_tasks()) {
    if (task.name == name) return task;
    names.push_back(task.name);
  }
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  throw UsageError(
      cat("unknown task '", name, "'", did_you_mean(name, names), "; there are ", list));
}

std::vector<const Task*> parse_tasks(const std::string& list) {
  std::vector<const Task*> tasks;
  if (list == "all") {
    for (const Task& task : all_tasks()) tasks.push_back(&task);
    return tasks;
  }
  std::istringstream names(list + ",");
  for (std::string name; std::getline(names, name, ',');) {
    const Task* task = &find_task(std::string(text::strip(name)));
    check_usage(std::find(tasks.begin(), tasks.end(), task) == tasks.end(), "--tasks: ", task->name,
                " is there twice");
    tasks.push_back(task);
  }
  return tasks;
}

}  // namespace xsa::tasks
