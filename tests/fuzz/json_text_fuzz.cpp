// libFuzzer: any line is a row or a fault, and what the JSON library takes is never broken.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "xsa/base/parse_json.h"
#include "xsa/data/json_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  for (const char* column : {"a", "a.b", "a.b.c"}) {
    xsa::data::JsonText json(column);
    xsa::data::Row row;
    json.read(line, row);
    const bool is_object = xsa::try_parse_json(line).is_object();
    if (is_object && row.fault == xsa::data::Fault::kBroken) std::abort();
  }
  return 0;
}
