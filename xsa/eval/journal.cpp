#include "xsa/eval/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/hash.h"
#include "xsa/base/parse_json.h"

namespace xsa::eval {
namespace {

constexpr const char* kFormat = "xsa scores 2";
constexpr const char* kForeign = ": expected scores of an evaluation, got another file";
constexpr const char* kRemedy = "; give another --output, or --overwrite to begin anew";

/// "model (has 12ab, wants 34cd), data (...)"; "" where the headers are equal.
std::string differences(const Json& has, const Json& wants) {
  std::string text;
  for (const auto& item : wants.items()) {
    const Json other = has.value(item.key(), Json());
    if (other == item.value()) continue;
    text += cat(text.empty() ? "" : ", ", item.key(), " (", other.dump(), " there, ",
                item.value().dump(), " now)");
  }
  return text;
}

}  // namespace

Journal::Journal(const std::filesystem::path& path, const Json& header, std::int64_t items,
                 const std::function<void()>& clear)
    : path_(path), scores_(static_cast<std::size_t>(items)) {
  Json full = {{"format", kFormat}};
  full.update(header);
  header_ = full.dump();
  std::error_code ignored;  // the open below says it better
  std::filesystem::create_directories(path.parent_path(), ignored);
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  check(fd_ >= 0, path.string(), ": cannot be opened for writing: ", std::strerror(errno));
  try {
    check(::flock(fd_, LOCK_EX | LOCK_NB) == 0, path.string(),
          ": another evaluation is writing here; wait for it, or give another --output");
    if (clear) clear();
    const std::size_t whole = clear ? 0 : read(full);
    check(::ftruncate(fd_, static_cast<off_t>(whole)) == 0, path.string(), ": ",
          std::strerror(errno));
    if (whole == 0) append(header_ + "\n");
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

Journal::~Journal() { ::close(fd_); }

/// Reads what is there; returns the length of its whole lines.
std::size_t Journal::read(const Json& header) {
  const std::string text = read_file(path_);
  const std::size_t whole = text.rfind('\n') + 1;  // 0 where there is no line
  check(whole > 0 || header_.starts_with(text), path_.string(), kForeign, kRemedy);
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < whole;) {
    const std::size_t end = text.find('\n', begin);
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (++number > 1) {
      read_line(line, number);
      continue;
    }
    const Json found = try_parse_json(line);
    check(found.is_object() && found.value("format", Json()) == kFormat, path_.string(), kForeign,
          kRemedy);
    const std::string different = differences(found, header);
    check_usage(different.empty(), path_.string(),
                ": holds scores of another evaluation: ", different, kRemedy);
  }
  return whole;
}

void Journal::read_line(std::string_view line, std::int64_t number) {
  const Json json = try_parse_json(line);
  const bool whole = json.is_array() && json.size() == 4 && json[0].is_number_integer() &&
                     json[1].is_number() && json[2].is_boolean() &&
                     json[0].get<std::int64_t>() >= 0 &&
                     json[0].get<std::int64_t>() < std::ssize(scores_);
  const Scored scored =
      whole ? Scored{json[0].get<std::int64_t>(),
                     {.log_likelihood = json[1].get<double>(), .greedy = json[2].get<bool>()}}
            : Scored{};
  check(whole && line == line_of(scored), path_.string(), ", line ", number,
        ": damaged: expected [request, log-likelihood, greedy, checksum], got '",
        line.substr(0, 80), "'", kRemedy);
  scores_[static_cast<std::size_t>(scored.item)] = scored.score;
}

std::string Journal::line_of(const Scored& scored) const {
  Json line{scored.item, scored.score.log_likelihood, scored.score.greedy};
  const std::string text = header_ + line.dump();
  line.push_back(sha256(std::as_bytes(std::span(text))).substr(0, 8));
  return line.dump();
}

void Journal::add(std::span<const Scored> scored) {
  std::string lines;
  for (const Scored& each : scored) lines += line_of(each) + "\n";
  append(lines);
}

void Journal::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    check(written > 0, path_.string(), ": cannot be written: ", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace xsa::eval
