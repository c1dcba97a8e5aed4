#include "xsa/base/parse_json.h"

#include "xsa/base/error.h"

namespace xsa {
namespace {

/// Looks at brackets alone: what else may be wrong is the parser's to say.
bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\';
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

template <class AnyJson>
AnyJson parse(std::string_view text) {
  check(!nests_too_deep(text), "expected at most ", kMaxJsonDepth, " levels of nesting, got more");
  try {
    return AnyJson::parse(text);
  } catch (const typename AnyJson::parse_error& error) {
    const std::string_view text_with_tag = error.what();  // "[json.exception.parse_error.101] ..."
    throw Error(cat("expected JSON, but ", text_with_tag.substr(text_with_tag.find(' ') + 1)));
  }
}

}  // namespace

Json parse_json(std::string_view text) { return parse<Json>(text); }

nlohmann::json parse_sorted_json(std::string_view text) { return parse<nlohmann::json>(text); }

Json try_parse_json(std::string_view text) {
  return nests_too_deep(text) ? Json(Json::value_t::discarded)
                              : Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace xsa
