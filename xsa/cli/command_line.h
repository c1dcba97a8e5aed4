// A command's options and arguments, declared once: how they are read, what an error says and the
// help all follow from that. This header is light: nothing of a parser's is in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace xsa::cli {

/// What a value must be.
struct Check {
  std::function<std::string(const std::string& text)> mistake;  // "" where the text will do
  std::string range;  // as the help shows it, "at least 1"; may be ""
};
Check whole_number(std::int64_t least,
                   std::int64_t most = std::numeric_limits<std::int64_t>::max());
Check number();
/// A value that a script's empty variable may have made.
Check not_empty();
Check one_of_words(std::vector<std::string> words);

namespace option_value {
// Each throws UsageError without the option's name; a vector takes one value more.
void read(const std::string& text, std::string& value);
void read(const std::string& text, std::filesystem::path& value);
void read(const std::string& text, std::int64_t& value);
void read(const std::string& text, double& value);
template <class T>
void read(const std::string& text, std::optional<T>& value) {
  read(text, value.emplace());
}
template <class T>
void read(const std::string& text, std::vector<T>& value) {
  read(text, value.emplace_back());
}

// What a value is before anything is read, as the help shows it; "" where it says nothing.
std::string shown(const std::string& value);
std::string shown(const std::filesystem::path& value);
std::string shown(std::int64_t value);
std::string shown(double value);
template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? shown(*value) : "";
}
template <class T>
std::string shown(const std::vector<T>& value) {
  std::string text;
  for (const T& each : value) {
    if (!text.empty()) text += ',';
    text += shown(each);
  }
  return text;
}

template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};
template <class T>
struct ValueOf<std::vector<T>> {
  using Type = T;
};
template <class T>
constexpr bool kIsVector = false;
template <class T>
constexpr bool kIsVector<std::vector<T>> = true;
}  // namespace option_value

/// A setting of a recipe, as the help shows it.
struct SettingHelp {
  std::string name, kind, default_value, help;  // "train.lr", "NUMBER", "0.001", ...
};

class CommandLine {
 public:
  /// One flag ("--json"), option ("--name VALUE") or argument ("recipe").
  class Option {
   public:
    Option* check(Check check);
    Option* required();
    /// In place of the value that it has before anything is read.
    Option* default_str(std::string text);
    /// One word holds several values.
    Option* delimiter(char between);
    Option* excludes(const Option* other);
    /// Shown by --help-all alone.
    Option* rare();

   private:
    friend class CommandLine;
    bool is_argument() const { return !names.front().starts_with('-'); }
    bool is_flag() const { return kind.empty(); }
    bool answers_to(std::string_view name) const;
    const std::string& name() const { return names.back(); }  // the long one
    void take(const std::string& text);

    std::vector<std::string> names;
    std::string help, default_text;
    std::string_view kind;  // of the value; "" for a flag
    std::function<void(const std::string&)> read;
    std::function<void()> clear;  // what a vector holds by default
    std::optional<Check> check_;
    const Option* excluded = nullptr;
    char between = '\0';
    bool is_required = false, is_rare = false, repeats = false, is_given = false;
  };

  CommandLine(std::string name, std::string about);

  /// `names` as "--text", "-o,--output", or "recipe" for an argument without a flag. A vector's
  /// option may be repeated; a vector's argument takes all that are left.
  template <class T>
  Option* add_option(const std::string& names, T& target, const std::string& help) {
    using Value = typename option_value::ValueOf<T>::Type;
    Option* const option = add(names, help);
    option->kind = std::is_same_v<Value, std::int64_t> ? "N"
                   : std::is_same_v<Value, double>     ? "NUMBER"
                                                       : "TEXT";
    option->default_text = option_value::shown(target);
    option->read = [&target](const std::string& text) { option_value::read(text, target); };
    if constexpr (option_value::kIsVector<T>) {
      option->repeats = true;
      option->clear = [&target] { target.clear(); };
    }
    return option;
  }
  Option* add_flag(const std::string& names, bool& target, const std::string& help);
  Option* add_flag_callback(const std::string& names, std::function<void()> given,
                            const std::string& help);

  /// Examples and whatever else the help should say below the options.
  void footer(std::string text) { footer_ = std::move(text); }

  /// Takes "--table.field=value" and "--table.field value" into `settings`. `names` are those that
  /// a mistyped one is compared with.
  void take_settings(std::vector<std::pair<std::string, std::string>>& settings,
                     std::vector<std::string> names);
  /// --help shows the `few` that people use; --help-all shows all.
  void list_settings(std::vector<SettingHelp> all, std::vector<std::string> few);

  /// Reads what stands after the command's name. Throws UsageError for an unknown flag or setting
  /// (with what may be meant), a missing value or a wrong one. False: help was asked for.
  bool parse(const std::vector<std::string>& words);
  /// The help that was asked for.
  std::string help() const { return help(all_); }

 private:
  using Words = std::vector<std::string>;

  Option* add(const std::string& names, const std::string& help);
  Option* find(std::string_view name);
  std::string help(bool all) const;
  std::string usage() const;
  static std::string row_of(const Option& option);
  /// The value of the flag at words[i], behind its "=" or the next word; i is then there.
  std::string value_of(const Words& words, std::size_t& i) const;
  void take_flag(const Words& words, std::size_t& i);
  void take_argument(const std::string& word);
  void check_complete() const;
  [[noreturn]] void refuse_flag(const Words& words, std::size_t i) const;
  std::string see_help() const { return "; see xsa " + name_ + " --help"; }

  std::string name_, about_, footer_;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::pair<std::string, std::string>>* settings_ = nullptr;
  std::vector<std::string> setting_names_, few_;
  std::vector<SettingHelp> listed_;
  bool all_ = false;
};

}  // namespace xsa::cli
