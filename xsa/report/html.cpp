#include "xsa/report/html.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/report/escape.h"

namespace xsa::report {

extern const std::string_view kEmbedded_frame_html, kEmbedded_page_css, kEmbedded_plots_js;

namespace fs = std::filesystem;

std::string text_of(const Json& json) {
  if (json.is_null()) return "–";
  return json.is_string() ? json.get<std::string>()
                          : json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string element(const char* tag, std::string_view text, std::string_view attributes) {
  return cat("<", tag, attributes.empty() ? "" : " ", attributes, ">", escape_html(text), "</", tag,
             ">");
}

std::string fill(std::string_view page, const std::map<std::string_view, std::string_view>& parts) {
  std::string filled;
  for (std::size_t from = 0;;) {
    const std::size_t open = page.find("{{", from);
    filled += page.substr(from, open - from);
    if (open == std::string_view::npos) return filled;
    const std::size_t close = page.find("}}", open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto part = parts.find(name);
    check(part != parts.end(), "page: unknown place {{", name, "}}");
    filled += part->second;
    from = close + 2;
  }
}

std::string render(const Page& page) {
  return fill(kEmbedded_frame_html, {{"generator", page.generator},
                                     {"title", page.title},
                                     {"main", page.main},
                                     {"data", page.data},
                                     {"script", page.script},
                                     {"css", kEmbedded_page_css},
                                     {"plots", kEmbedded_plots_js},
                                     {"plotly", page.plotly_js}});
}

bool is_page_of(std::string_view generator, std::string_view beginning) {
  const std::string mark = cat("<meta name=\"generator\" content=\"", generator, "\">");
  return beginning.starts_with("<!DOCTYPE html>") &&
         beginning.find(mark) < kEmbedded_frame_html.size();
}

namespace {

bool contains_ignoring_case(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }) != text.end();
}

}  // namespace

std::string read_plotly() {
  const char* const named = std::getenv("XSA_PLOTLY_JS");
  const fs::path path = named != nullptr
                            ? fs::path(named)
                            : fs::path(XSA_PLOTLY_FOLDER) / "package_data" / "plotly.min.js";
  check(fs::is_regular_file(path), "report: expected plotly.min.js at '", path.string(),
        "', which is no file. Install Python's plotly (`make build` does), or name the file in "
        "XSA_PLOTLY_JS.");
  const std::string text = read_file(path);
  check(!text.empty(), path.string(), ": expected plotly.js, got an empty file");
  for (const char* const mark : {"</script", "<!--"})
    check(!contains_ignoring_case(text, mark), path.string(), ": contains '", mark,
          "', which would break the page's script; expected PyPI plotly's plotly.min.js");
  return text;
}

}  // namespace xsa::report
