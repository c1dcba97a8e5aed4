#include "xsa/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <thread>

#include "xsa/base/error.h"

namespace xsa {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A pseudo-terminal of a given width; `text` is what was written to it.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{.ws_row = 24, .ws_col = columns};
    check(::openpty(&reader_, &writer_, nullptr, nullptr, &size) == 0, "openpty failed");
    out_ = ::fdopen(writer_, "w");
  }
  ~Terminal() {
    std::fclose(out_);
    ::close(reader_);
  }
  std::FILE* out() const { return out_; }
  std::string text() const {
    std::string text;
    pollfd ready{.fd = reader_, .events = POLLIN};
    char buffer[4096];
    while (::poll(&ready, 1, 0) == 1) {
      const ssize_t count = ::read(reader_, buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  int reader_ = -1, writer_ = -1;
  std::FILE* out_ = nullptr;
};

/// Columns of a line on the screen: without control sequences, one a UTF-8 character.
std::int64_t screen_columns(const std::string& text) {
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      while (!std::isalpha(static_cast<unsigned char>(text[i]))) ++i;
    else if (text[i] != '\r' && text[i] != '\n' && (text[i] & 0xC0) != 0x80)
      ++columns;
  }
  return columns;
}

std::string plain_output(const std::function<void(Progress&)>& use) {
  std::FILE* memory = std::tmpfile();
  {
    Progress progress("standard", 300, "step", memory);
    use(progress);
  }
  std::string result;
  std::rewind(memory);
  for (int c; (c = std::fgetc(memory)) != EOF;) result += static_cast<char>(c);
  std::fclose(memory);
  return result;
}

class TerminalProgress : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
  }
};

TEST_F(TerminalProgress, ShowsLabelBarPercentCountDetailsAndTimes) {
  const Terminal terminal(120);
  Progress progress("standard", 300, "step", terminal.out());
  progress.update(150, "loss 2.135");
  EXPECT_THAT(terminal.text(),
              AllOf(StartsWith("\r\x1b[Kstandard ▕"), HasSubstr("█████"),
                    HasSubstr(" 50%  step 150/300  loss 2.135  0:0"), EndsWith(" left")));
}

TEST_F(TerminalProgress, NeverFillsTheLastColumnWhateverTheWidth) {
  for (unsigned short width = 4; width < 140; ++width) {
    const Terminal terminal(width);
    Progress progress("ünïcode", 300, "step", terminal.out());
    progress.update(123, "loss 2.135  val 2.150  21.3k tokens/s");
    const std::string text = terminal.text();
    EXPECT_LT(screen_columns(text), width) << text;
    EXPECT_GT(screen_columns(text), 0);
    EXPECT_THAT(text, Not(HasSubstr("\n")));
  }
}

TEST_F(TerminalProgress, TheBarGrowsByEighthsFromEmptyToFull) {
  ::setenv("NO_COLOR", "1", 1);
  const auto drawn = [](std::int64_t done) {
    const Terminal terminal(200);
    Progress progress("x", 320, "step", terminal.out());
    progress.update(done, "");
    return terminal.text();
  };
  EXPECT_THAT(drawn(0), HasSubstr("▕" + std::string(40, ' ') + "▏   0%"));
  EXPECT_THAT(drawn(11), HasSubstr("▕█▍" + std::string(38, ' ') + "▏   3%"));
  EXPECT_THAT(drawn(319), HasSubstr("█▉▏  99%"));
  EXPECT_THAT(drawn(320), AllOf(HasSubstr("█▏ 100%"), Not(HasSubstr(" ▏"))));
  EXPECT_THAT(drawn(999), HasSubstr("█▏ 100%"));
}

TEST_F(TerminalProgress, NoColorIsHonoured) {
  const auto drawn = [] {
    const Terminal terminal(100);
    Progress("x", 10, "step", terminal.out()).update(5, "");
    return terminal.text();
  };
  EXPECT_THAT(drawn(), HasSubstr("\x1b[32m"));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_THAT(drawn(), Not(HasSubstr("\x1b[32m")));
}

TEST_F(TerminalProgress, ADumbTerminalGetsPlainLines) {
  ::setenv("TERM", "dumb", 1);
  const Terminal terminal(100);
  Progress("x", 10, "step", terminal.out()).update(10, "");
  EXPECT_THAT(terminal.text(), AllOf(StartsWith("x: 100%  step 10/10  0:0"), EndsWith("\n"),
                                     Not(HasSubstr("\x1b"))));
}

TEST_F(TerminalProgress, ALineIsPrintedAboveTheBar) {
  const Terminal terminal(100);
  Progress progress("x", 10, "step", terminal.out());
  progress.print_line("before");
  EXPECT_EQ(terminal.text(), "before\r\n");
  progress.update(5, "");
  terminal.text();
  progress.print_line("saved");
  EXPECT_THAT(terminal.text(), StartsWith("\r\x1b[Ksaved\r\n\r\x1b[Kx ▕"));
  progress.finish();
  terminal.text();
  progress.print_line("after");
  EXPECT_EQ(terminal.text(), "after\r\n");
}

TEST_F(TerminalProgress, ManyUpdatesDrawSeldom) {
  const Terminal terminal(100);
  Progress progress("x", 100'000, "step", terminal.out());
  const auto start = std::chrono::steady_clock::now();
  std::int64_t draws = 0;
  for (std::int64_t i = 0; i < 100'000; ++i) progress.update(i, "loss");
  const auto tenths = (std::chrono::steady_clock::now() - start) / std::chrono::milliseconds(100);
  const std::string text = terminal.text();
  draws = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(draws, 1);
  EXPECT_LE(draws, tenths + 1);
}

TEST_F(TerminalProgress, WhatAResumedRunFoundDoneDoesNotCountForTheTimeLeft) {
  const Terminal terminal(120);
  Progress progress("x", 1000, "step", terminal.out());
  progress.start_at(900);
  progress.update(900, "");
  EXPECT_THAT(terminal.text(), AllOf(HasSubstr("90%  step 900/1000"), HasSubstr(", -:-- left")));
}

TEST_F(TerminalProgress, WaitsWithShortWorkAndCountsFromItsBegin) {
  const Terminal terminal(120);
  {
    Progress progress("x", 1000, "step", terminal.out());
    progress.show_after(std::chrono::hours(1));
    progress.update(999, "");
  }
  EXPECT_EQ(terminal.text(), "");
  Progress progress("x", 1000, "step", terminal.out());
  progress.show_after(std::chrono::seconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  progress.update(500, "");
  EXPECT_THAT(terminal.text(),
              AllOf(HasSubstr("step 500/1000"), Not(HasSubstr("0:00")), HasSubstr(" left")));
}

TEST(PlainProgress, IsOneLineAtTheEndOfShortWork) {
  EXPECT_THAT(plain_output([](Progress& progress) {
                for (int i = 1; i <= 300; ++i) progress.update(i, "loss 2.1");
              }),
              StartsWith("standard: 100%  step 300/300  loss 2.1  0:0"));
}

TEST(PlainProgress, OfNoWorkIsSilent) {
  EXPECT_EQ(plain_output([](Progress&) {}), "");
  EXPECT_EQ(plain_output([](Progress& progress) { progress.finish(); }), "");
}

TEST(PlainProgress, FinishesOnce) {
  const std::string text = plain_output([](Progress& progress) {
    progress.update(30, "");
    progress.finish();
    progress.finish();
  });
  EXPECT_THAT(text, AllOf(StartsWith("standard:  10%  step 30/300  0:0"), EndsWith(" left\n")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(PlainProgress, OfUnknownOrEmptyTotalDoesNotDivideByIt) {
  std::FILE* memory = std::tmpfile();
  Progress("x", 0, "file", memory).update(0, "");
  EXPECT_GT(std::ftell(memory), 0);
  std::fclose(memory);
}

TEST(ShortText, CountsHaveThreeDigits) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(950), "950");
  EXPECT_EQ(short_count(999.7), "1.00k");
  EXPECT_EQ(short_count(21'300), "21.3k");
  EXPECT_EQ(short_count(99'960), "100k");
  EXPECT_EQ(short_count(999'600), "1.00M");
  EXPECT_EQ(short_count(4.56e6), "4.56M");
  EXPECT_EQ(short_count(1.2e9), "1.20G");
  EXPECT_EQ(short_count(-21'300), "-21.3k");
  EXPECT_EQ(short_count(5e15), "5000T");
}

TEST(ShortText, TimesReadLikeAClock) {
  EXPECT_EQ(short_time(0), "0:00");
  EXPECT_EQ(short_time(42.9), "0:42");
  EXPECT_EQ(short_time(725), "12:05");
  EXPECT_EQ(short_time(11231), "3:07:11");
  for (const double unknown : {-1.0, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN(), 1e300})
    EXPECT_EQ(short_time(unknown), "-:--");
}

TEST(ShortText, BytesAreBinary) {
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(512), "512 B");
  EXPECT_EQ(short_bytes(48.0 * (1 << 20)), "48.0 MiB");
  EXPECT_EQ(short_bytes(1.5 * (1 << 30)), "1.50 GiB");
  EXPECT_EQ(short_bytes((1 << 20) - 1), "1.00 MiB");
}

}  // namespace
}  // namespace xsa
