// Text from files as parts of the page that stay text.
#pragma once

#include <string>
#include <string_view>

#include "xsa/base/json.h"

namespace xsa::report {

/// For an element's text or a quoted attribute.
std::string escape_html(std::string_view text);

/// The same JSON, without a '<' that could end the script element that it stands in.
std::string script_json(const Json& json);

}  // namespace xsa::report
