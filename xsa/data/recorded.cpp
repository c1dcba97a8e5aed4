#include "xsa/data/recorded.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/signals.h"
#include "xsa/data/source.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

/// As it is seen from any folder. A pattern stays one.
std::string absolute(const std::string& path) {
  std::error_code ignored;
  const fs::path full = fs::absolute(path, ignored).lexically_normal();
  return full.empty() ? path : full.string();
}

std::string location_of(const std::string& source) {
  return source == kShakespeare ? source : absolute(source);
}

}  // namespace

DataRecord record_of(const DataConfig& config, const Dataset& dataset) {
  return {location_of(config.source), absolute(config.cache), dataset.sha256()};
}

RecordedData open_recorded(const DataConfig& config, const DataRecord& record,
                           const std::string& owner, const std::string& remedy) {
  std::vector<DataConfig> places;
  std::error_code ignored;
  if (!record.location.empty()) {
    places.push_back(config);
    places.back().source = record.location;
    // The folder that holds its shards already; one that is gone is not made anew far away.
    if (fs::is_directory(record.cache, ignored)) places.back().cache = record.cache;
  }
  if (location_of(config.source) != record.location) places.push_back(config);

  std::string found;
  for (const DataConfig& place : places) {
    const std::string name = location_of(place.source);
    found += cat(found.empty() ? "" : "; ", "found ");
    try {
      Dataset dataset = open_dataset(place);
      const std::string hash = dataset.sha256();
      if (record.sha256.empty() || hash == record.sha256) return {std::move(dataset), place};
      found += cat(name, " with SHA-256 ", hash, ": it has changed since, or is another");
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      found += cat("nothing to read at '", name, "': ", error.what());
    }
  }
  throw Error(cat(owner, ": expected the tokens that it was trained on, with SHA-256 ",
                  record.sha256.empty() ? "unknown" : record.sha256, "; ", found, ". ", remedy));
}

}  // namespace xsa::data
