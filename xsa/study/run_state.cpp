#include "xsa/study/run_state.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"

namespace xsa::study {

namespace fs = std::filesystem;

std::optional<Newest> newest_of(const fs::path& folder) {
  std::FILE* const file = std::fopen((folder / "metrics.jsonl").c_str(), "rb");
  if (file == nullptr) return std::nullopt;
  char tail[4096];
  std::fseek(file, 0, SEEK_END);
  std::fseek(file, -std::min<long>(std::ftell(file), sizeof tail), SEEK_CUR);
  std::string text(tail, std::fread(tail, 1, sizeof tail, file));
  std::fclose(file);
  for (std::size_t end = text.rfind('\n'); end != std::string::npos && end > 0;) {
    const std::size_t begin = text.rfind('\n', end - 1);
    const Json line = try_parse_json(std::string_view(text).substr(begin + 1, end - begin - 1));
    const auto at = [&](const char* key) {
      return line.is_object() ? line.value(key, Json()) : Json();
    };
    if (at("type") == "train" && at("step").is_number_integer() && at("loss").is_number())
      return Newest{at("step").get<std::int64_t>(), at("loss").get<double>()};
    end = begin;
  }
  return std::nullopt;
}

std::optional<Json> summary_of(const fs::path& folder) {
  const fs::path path = folder / "summary.json";
  if (!fs::exists(path) || !fs::exists(folder / "recipe.json")) return std::nullopt;
  const Json summary = try_parse_json(read_file(path));
  check(summary.is_object() && summary.value("validation_loss", Json()).is_number() &&
            summary.value("data_sha256", Json()).is_string(),
        path.string(),
        ": expected a finished run's, with a number validation_loss and a text data_sha256, found "
        "none; remove it, and the run ends anew from its last checkpoint");
  return summary;
}

}  // namespace xsa::study
