#include "xsa/base/json.h"

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"

namespace xsa {

Json read_json_file(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw Error(cat(path.string(), ": ", error.what()));
  }
}

std::int64_t count_in(const Json& object, const char* key) {
  return static_cast<std::int64_t>(object.at(key).get_ref<const Json::number_unsigned_t&>());
}

void write_json_file(const std::filesystem::path& path, const Json& json) {
  atomic_write(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace xsa
