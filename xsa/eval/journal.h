// Scores on disk as they come, so that a killed evaluation continues: a header that says what is
// scored, then a line a request. JSON lines; a line that a kill cut short is dropped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/eval/scorer.h"

namespace xsa::eval {

class Journal {
 public:
  /// Continues the file at `path`, or begins it (and its folders). `header` is an object that says
  /// what the scores depend on. Until its end the object holds the file, and so the evaluation's
  /// folder, against other processes. `clear`, where given, begins anew whatever is there: it is
  /// called once the file is held, to remove what belongs to the scores. Throws UsageError naming
  /// each key in which the file's header differs; Error for a file that is no journal, has a
  /// damaged line, or is in another process's hands, with the remedy.
  Journal(const std::filesystem::path& path, const Json& header, std::int64_t items,
          const std::function<void()>& clear = {});
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// What earlier processes left: a score, or nothing, for each item.
  const std::vector<std::optional<tasks::Score>>& scores() const { return scores_; }
  /// Appends; a kill after it returns loses nothing. Throws Error where the disk is full.
  void add(std::span<const Scored> scored);

 private:
  std::size_t read(const Json& header);
  void read_line(std::string_view line, std::int64_t number);
  /// With a checksum of it and of the header.
  std::string line_of(const Scored& scored) const;
  void append(std::string_view text);

  std::filesystem::path path_;
  std::string header_;
  std::vector<std::optional<tasks::Score>> scores_;
  int fd_ = -1;
};

}  // namespace xsa::eval
