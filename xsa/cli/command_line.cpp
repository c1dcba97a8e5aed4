#include "xsa/cli/command_line.h"

#include <algorithm>
#include <charconv>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/cli/other_names.h"

namespace xsa::cli {
namespace {

template <class T>
bool read_number(const std::string& text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && read == end;
}

/// "--a,--b" as {"--a", "--b"}; "" is {""}.
std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::size_t begin = 0, end = 0;
  do {
    end = std::min(text.find(between, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  } while (end < text.size());
  return parts;
}

/// "-" is standard input and "-1" a number: neither is a flag.
bool looks_like_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

bool is_setting_name(std::string_view name) {
  return name.starts_with("--") && name.find('.') != std::string_view::npos;
}

std::string name_in(const std::string& word) { return word.substr(0, word.find('=')); }

/// A row of the help: what it is, and in column 30 what it does.
std::string row(const std::string& head, const std::string& help) {
  constexpr std::size_t kColumn = 30;
  std::string line = cat("  ", head), indent(kColumn, ' ');
  if (line.size() + 2 > kColumn) return cat(line, "\n", indent, help, "\n");
  line.resize(kColumn, ' ');
  return cat(line, help, "\n");
}

}  // namespace

Check whole_number(std::int64_t least, std::int64_t most) {
  const bool is_open = most == std::numeric_limits<std::int64_t>::max();
  const std::string range = is_open ? cat("at least ", least) : cat("from ", least, " to ", most);
  const auto mistake = [=](const std::string& text) {
    std::int64_t value = 0;
    return read_number(text, value) && value >= least && value <= most
               ? ""
               : cat("expected a whole number ", is_open ? "of " : "", range, ", got '", text, "'");
  };
  return {mistake, range};
}

Check number() {
  return {[](const std::string& text) {
            double value = 0;
            return read_number(text, value) ? "" : cat("expected a number, got '", text, "'");
          },
          ""};
}

Check not_empty() {
  return {[](const std::string& text) {
            return std::string(text.empty() ? "expected a value, got ''" : "");
          },
          ""};
}

Check one_of_words(std::vector<std::string> words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  const auto mistake = [words, list](const std::string& text) {
    return std::ranges::find(words, text) != words.end()
               ? ""
               : cat("expected one of ", list, ", got '", text, "'", did_you_mean(text, words));
  };
  return {mistake, words.size() > 1 ? list : ""};
}

namespace option_value {

void read(const std::string& text, std::string& value) { value = text; }
void read(const std::string& text, std::filesystem::path& value) { value = text; }

void read(const std::string& text, std::int64_t& value) {
  check_usage(read_number(text, value), "expected a whole number, got '", text, "'");
}

void read(const std::string& text, double& value) {
  check_usage(read_number(text, value), "expected a number, got '", text, "'");
}

std::string shown(const std::string& value) { return value; }
std::string shown(const std::filesystem::path& value) { return value.string(); }
std::string shown(std::int64_t value) { return value == 0 ? "" : cat(value); }
std::string shown(double value) { return value == 0 ? "" : cat(value); }

}  // namespace option_value

using Option = CommandLine::Option;

Option* Option::check(Check check) {
  check_ = std::move(check);
  return this;
}
Option* Option::required() {
  is_required = true;
  return this;
}
Option* Option::default_str(std::string text) {
  default_text = std::move(text);
  return this;
}
Option* Option::delimiter(char letter) {
  between = letter;
  return this;
}
Option* Option::excludes(const Option* other) {
  excluded = other;
  return this;
}
Option* Option::rare() {
  is_rare = true;
  return this;
}

bool Option::answers_to(std::string_view given) const {
  return std::ranges::find(names, given) != names.end();
}

void Option::take(const std::string& text) {
  check_usage(!is_given || repeats || is_flag(), name(), ": given twice; expected one value");
  if (!is_given && clear) clear();
  is_given = true;
  for (const std::string& part :
       between == '\0' ? std::vector<std::string>{text} : split(text, between)) {
    const std::string mistake = check_ ? check_->mistake(part) : "";
    check_usage(mistake.empty(), name(), ": ", mistake);
    try {
      read(part);
    } catch (const UsageError& error) {
      throw UsageError(cat(name(), ": ", error.what()));
    }
  }
}

CommandLine::CommandLine(std::string name, std::string about)
    : name_(std::move(name)), about_(std::move(about)) {}

Option* CommandLine::add(const std::string& names, const std::string& help) {
  Option* const option = options_.emplace_back(std::make_unique<Option>()).get();
  option->names = split(names, ',');
  option->help = help;
  return option;
}

Option* CommandLine::add_flag(const std::string& names, bool& target, const std::string& help) {
  return add_flag_callback(names, [&target] { target = true; }, help);
}

Option* CommandLine::add_flag_callback(const std::string& names, std::function<void()> given,
                                       const std::string& help) {
  Option* const option = add(names, help);
  option->read = [given = std::move(given)](const std::string&) { given(); };
  return option;
}

void CommandLine::take_settings(std::vector<std::pair<std::string, std::string>>& settings,
                                std::vector<std::string> names) {
  settings_ = &settings;
  setting_names_ = std::move(names);
}

void CommandLine::list_settings(std::vector<SettingHelp> all, std::vector<std::string> few) {
  listed_ = std::move(all);
  few_ = std::move(few);
}

Option* CommandLine::find(std::string_view name) {
  for (const auto& option : options_)
    if (!option->is_argument() && option->answers_to(name)) return option.get();
  return nullptr;
}

std::string CommandLine::value_of(const Words& words, std::size_t& i) const {
  const std::size_t equals = words[i].find('=');
  if (equals != std::string::npos) return words[i].substr(equals + 1);
  const std::string& name = words[i];
  const bool is_there = i + 1 < words.size();
  check_usage(is_there && !looks_like_flag(words[i + 1]), name, ": expected a value, as ", name,
              "=VALUE", is_there ? cat(", got the next flag, ", words[i + 1]) : "", see_help());
  return words[++i];
}

void CommandLine::take_flag(const Words& words, std::size_t& i) {
  const std::string name = name_in(words[i]);
  if (Option* const option = find(name)) {
    check_usage(!option->is_flag() || name == words[i], name, " takes no value, got '", words[i],
                "'", see_help());
    option->take(option->is_flag() ? "" : value_of(words, i));
  } else if (settings_ != nullptr && is_setting_name(name) &&
             std::ranges::find(setting_names_, name.substr(2)) != setting_names_.end()) {
    settings_->emplace_back(name.substr(2), value_of(words, i));
  } else {
    refuse_flag(words, i);
  }
}

void CommandLine::refuse_flag(const Words& words, std::size_t i) const {
  const std::string name = name_in(words[i]);
  const bool is_setting = settings_ != nullptr && is_setting_name(name);
  std::string given = words[i].substr(name.size());
  if (given.empty() && i + 1 < words.size() && !looks_like_flag(words[i + 1]))
    given = "=" + words[i + 1];
  Words known;
  for (const auto& option : options_) known.push_back(option->name());
  for (const std::string& setting : setting_names_) known.push_back("--" + setting);
  throw UsageError(cat(is_setting ? "unknown setting '" : "unexpected argument '",
                       is_setting ? name : words[i], "'", what_is_meant(name, given, known),
                       see_help()));
}

void CommandLine::take_argument(const std::string& word) {
  for (const auto& option : options_) {
    if (!option->is_argument() || (option->is_given && !option->repeats)) continue;
    option->take(word);
    return;
  }
  throw UsageError(cat("unexpected argument '", word, "'", see_help()));
}

void CommandLine::check_complete() const {
  for (const auto& option : options_) {
    check_usage(!option->is_required || option->is_given, option->name(), " is required",
                see_help());
    check_usage(!option->is_given || option->excluded == nullptr || !option->excluded->is_given,
                option->name(), " and ", option->excluded ? option->excluded->name() : "",
                " exclude one another; leave one out", see_help());
  }
}

bool CommandLine::parse(const std::vector<std::string>& words) {
  const auto end = std::ranges::find(words, "--");
  const auto has = [&](const char* flag) { return std::find(words.begin(), end, flag) != end; };
  all_ = has("--help-all");
  if (all_ || has("--help") || has("-h")) return false;
  bool only_arguments = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--" && !only_arguments)
      only_arguments = true;
    else if (!only_arguments && looks_like_flag(words[i]))
      take_flag(words, i);
    else
      take_argument(words[i]);
  }
  check_complete();
  return true;
}

std::string CommandLine::row_of(const Option& option) {
  std::string head, notes;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + name;
  if (!option.is_argument() && !option.is_flag()) head += cat(" ", option.kind);
  const auto note = [&](const std::string& part) {
    if (!part.empty()) notes += (notes.empty() ? " (" : "; ") + part;
  };
  if (option.check_) note(option.check_->range);
  if (!option.default_text.empty()) note("default: " + option.default_text);
  return row(head, option.help + notes + (notes.empty() ? "" : ")"));
}

std::string CommandLine::usage() const {
  std::string text = "Usage: xsa " + name_;
  for (const auto& option : options_)
    if (option->is_argument())
      text += cat(option->is_required ? " " : " [", option->name(), option->repeats ? "..." : "",
                  option->is_required ? "" : "]");
  return text + " [options]\n" + about_ + "\n";
}

std::string CommandLine::help(bool all) const {
  std::string arguments, options, settings, table;
  std::size_t left_out = 0;
  for (const auto& option : options_) {
    if (option->is_rare && !all)
      ++left_out;
    else
      (option->is_argument() ? arguments : options) += row_of(*option);
  }
  for (const SettingHelp& setting : listed_) {
    if (all) {
      const std::string its = setting.name.substr(0, setting.name.find('.'));
      if (its != table) settings += cat("\n[", its, "]\n");
      table = its;
      settings += row(cat("--", setting.name, "=", setting.default_value), setting.help);
    } else if (std::ranges::find(few_, setting.name) != few_.end()) {
      options += row(cat("--", setting.name, "=", setting.kind), setting.help);
    } else {
      ++left_out;
    }
  }
  std::string text = usage();
  if (!arguments.empty()) text += "\n" + arguments;
  text += "\nOptions:\n" + options;
  if (left_out > 0)
    text += cat("\n", left_out, " more options and settings: xsa ", name_, " --help-all\n");
  if (!footer_.empty()) text += cat("\n", footer_, footer_.ends_with('\n') ? "" : "\n");
  return text + settings;
}

}  // namespace xsa::cli
