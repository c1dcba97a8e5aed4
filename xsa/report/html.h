// What the pages are made of.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "xsa/base/json.h"

namespace xsa::report {

/// A text as it is, other JSON as JSON; "–" for null.
std::string text_of(const Json& json);

/// <tag attributes>text, escaped</tag>
std::string element(const char* tag, std::string_view text, std::string_view attributes = "");

/// Fills each {{place}} once; what is filled in is not searched again.
std::string fill(std::string_view page, const std::map<std::string_view, std::string_view>& parts);

/// A page around its content, one file that loads nothing: style, plotly, what all plots share, and
/// a script of its own that finds `data` in #data.
struct Page {
  std::string_view generator;          // the command that writes it
  std::string_view title, main, data;  // as HTML, HTML, and script_json's text
  std::string_view script, plotly_js;
};
std::string render(const Page& page);

/// Whether a file that begins so is a page of this generator's.
bool is_page_of(std::string_view generator, std::string_view beginning);

/// plotly.min.js from the environment's XSA_PLOTLY_JS or from the build's Python. Throws Error
/// where there is none, or one that would end the script element that it stands in.
std::string read_plotly();

}  // namespace xsa::report
