// HellaSwag's texts carry marks of the page that they were taken from; the harness cleans them.
#pragma once

#include <string>
#include <string_view>

namespace xsa::tasks {

/// strip, then " [title]" becomes ". ", then every shortest [...] on one line goes, then each pair
/// of spaces becomes one, in one pass from the left. The result may begin or end with a space.
std::string clean_hellaswag(std::string_view text);

}  // namespace xsa::tasks
