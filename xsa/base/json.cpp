#include "xsa/base/json.h"

#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa {

Json read_json_file(const std::filesystem::path& path) {
  try {
    return Json::parse(read_file(path));
  } catch (const Json::parse_error& error) {
    throw Error(cat(path.string(), ": expected JSON, but ", error.what()));
  }
}

std::int64_t count_in(const Json& object, const char* key) {
  return static_cast<std::int64_t>(object.at(key).get_ref<const Json::number_unsigned_t&>());
}

void write_json_file(const std::filesystem::path& path, const Json& json) {
  atomic_write(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace xsa
