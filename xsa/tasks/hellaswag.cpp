#include "xsa/tasks/hellaswag.h"

#include "xsa/text/case.h"

namespace xsa::tasks {
namespace {

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t begin = 0;
  for (std::size_t found; (found = text.find(from, begin)) != std::string_view::npos;
       begin = found + from.size()) {
    result += text.substr(begin, found - begin);
    result += to;
  }
  return result += text.substr(begin);
}

/// Without what the regular expression \[.*?\] matches: a '[' up to the next ']' of its line.
std::string without_brackets(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') {
      const std::size_t end = text.find_first_of("]\n", i);
      if (end == std::string_view::npos) return result += text.substr(i);
      if (text[end] == '\n') result += text.substr(i, end - i + 1);
      i = end;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::string clean_hellaswag(std::string_view text) {
  const std::string titled = replace_all(text::strip(text), " [title]", ". ");
  return replace_all(without_brackets(titled), "  ", " ");
}

}  // namespace xsa::tasks
