// Where a run's data lay and what it was, so that it is found again from any working folder and no
// other is taken for it.
#pragma once

#include <string>

#include "xsa/data/dataset.h"

namespace xsa::data {

struct DataRecord {
  std::string location;  // data.source as an absolute path; "" where an older run kept none
  std::string cache;     // data.cache likewise
  std::string sha256;    // Dataset::sha256; "" where nothing is known of it
};

/// Of data that `config` opened just now, in this working folder.
DataRecord record_of(const DataConfig& config, const Dataset& dataset);

struct RecordedData {
  Dataset dataset;
  DataConfig config;  // that opened it
};

/// Opens the data of a run, whose settings are `config`: where it lay or, failing that, where
/// data.source leads from this working folder. Data of another hash is not taken. Throws Error that
/// says what `owner` was trained on and what was found in its place; `remedy` ends it.
RecordedData open_recorded(const DataConfig& config, const DataRecord& record,
                           const std::string& owner, const std::string& remedy);

}  // namespace xsa::data
