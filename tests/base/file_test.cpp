#include "xsa/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/support/temp_folder.h"
#include "xsa/base/signals.h"

namespace xsa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(ReadFile, ReturnsEveryByte) {
  const TempFolder folder;
  std::string content(200'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31);
  EXPECT_EQ(read_file(folder.write("a", content)), content);
  EXPECT_EQ(read_file(folder.write("empty", "")), "");
}

TEST(ReadFile, NamesThePathAndTheReason) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { read_file(folder / "none"); }),
              AllOf(HasSubstr((folder / "none").string()), HasSubstr("No such file")));
  EXPECT_THAT(error_of([&] { read_file(folder.path()); }),
              AllOf(HasSubstr(folder.path().string()), HasSubstr("Is a directory")));
}

TEST(ReadFile, TakesAPipeToTheEndOfItsWriter) {
  const TempFolder folder;
  const auto path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] {
    const int out = ::open(path.c_str(), O_WRONLY);  // waits for the reader
    EXPECT_EQ(::write(out, "one ", 4), 4);
    for (int unread = 4; unread > 0; std::this_thread::yield()) ::ioctl(out, FIONREAD, &unread);
    EXPECT_EQ(::write(out, "two", 3), 3);
    ::close(out);
  });
  EXPECT_EQ(read_file(path), "one two");
  writer.join();
}

TEST(ReadFile, OfAPipeEndsWhenAskedToStop) {
  const TempFolder folder;
  const auto path = folder / "pipe", plain = folder.write("a", "text");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // what goes on waiting ends by this
    install_stop_handlers();
    ::raise(SIGTERM);
    if (read_file(plain) != "text") ::_exit(1);  // state may be read while a run stops
    try {
      read_file(path);
    } catch (const Interrupted& stopped) {
      ::_exit(stopped.exit_code());
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

TEST(AtomicWrite, ReplacesTheFileAndMakesMissingFolders) {
  const TempFolder folder;
  atomic_write(folder / "a/b/c", "first");
  atomic_write(folder / "a/b/c", std::string_view("se\0cond", 7));
  EXPECT_EQ(read_file(folder / "a/b/c"), std::string("se\0cond", 7));
  EXPECT_FALSE(exists(folder / "a/b/c.partial"));
}

TEST(AtomicWrite, LeavesTheOldFileWhenItCannotWrite) {
  const TempFolder folder;
  folder.write("a", "old");
  create_directory(folder / "a.partial");  // where the new content would be written
  EXPECT_THAT(error_of([&] { atomic_write(folder / "a", "new"); }),
              AllOf(HasSubstr("a.partial"), HasSubstr("cannot create")));
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_THAT(error_of([&] { atomic_write(folder / "a/b", "new"); }), HasSubstr("cannot create"));
}

TEST(AtomicWrite, LeavesNothingBehindWhereTheDiskIsFull) {
  const TempFolder folder;
  folder.write("a", "old");
  install_stop_handlers();  // beyond the limit a write fails, as on a full disk
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] { atomic_write(folder / "a", std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(error, HasSubstr("a.partial: cannot write"));
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_FALSE(exists(folder / "a.partial"));
}

TEST(AtomicWrite, WritesIntoANamedPipeAndLeavesItOne) {
  const TempFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  atomic_write(pipe, "content");
  char buffer[16];
  const ssize_t count = ::read(reader, buffer, sizeof buffer);
  ::close(reader);
  EXPECT_EQ(std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0))), "content");
  EXPECT_TRUE(is_fifo(pipe));
}

TEST(AtomicWrite, FollowsSymbolicLinksAlsoToAFileThatIsNotThereYet) {
  const TempFolder folder;
  create_directory(folder / "far");
  create_symlink("far/file", folder / "second");
  create_symlink("second", folder / "first");
  for (const char* content : {"made", "replaced"}) {
    atomic_write(folder / "first", content);
    EXPECT_EQ(read_file(folder / "far/file"), content);
  }
  EXPECT_TRUE(is_symlink(folder / "first") && is_symlink(folder / "second"));
  create_symlink("loop", folder / "loop");
  EXPECT_THAT(error_of([&] { atomic_write(folder / "loop", "new"); }),
              HasSubstr("loop of symbolic links"));
}

TEST(AtomicWrite, ShowsAReaderTheOldOrTheNewFileThoughTheWriterIsKilled) {
  const TempFolder folder;
  const std::string a(1'000'000, 'a'), b(1'500'000, 'b');
  atomic_write(folder / "file", a);
  int interrupted = 0;
  for (int round = 0; round < 8; ++round) {
    int written[2];
    ASSERT_EQ(::pipe(written), 0);
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) {
        atomic_write(folder / "file", b);
        if (::write(written[1], "b", 1) != 1) ::_exit(1);
        atomic_write(folder / "file", a);
        if (::write(written[1], "a", 1) != 1) ::_exit(1);
      }
    for (int i = 0; i <= round; ++i) {  // the next is begun, or will be
      char which = 0;
      ASSERT_EQ(::read(written[0], &which, 1), 1);
    }
    const std::string during = read_file(folder / "file");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(written[0]);
    ::close(written[1]);
    const std::string after = read_file(folder / "file");
    EXPECT_TRUE(during == a || during == b) << round;
    EXPECT_TRUE(after == a || after == b) << round;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().filename() == "file") continue;
      ++interrupted;
      std::filesystem::remove(entry.path());
    }
  }
  EXPECT_GT(interrupted, 0);  // else this test tries nothing
}

TEST(SyncPath, NamesWhatIsMissing) {
  const TempFolder folder;
  EXPECT_EQ(error_of([&] { sync_path(folder.path()); }), "");
  EXPECT_THAT(error_of([&] { sync_path(folder / "none"); }), HasSubstr("No such file"));
}

TEST(MappedFile, ShowsTheBytesAndAnEmptyFileAsAnEmptySpan) {
  const TempFolder folder;
  EXPECT_EQ(text_of(MappedFile(folder.write("a", "hello"))), "hello");
  EXPECT_TRUE(MappedFile(folder.write("empty", "")).bytes().empty());
}

TEST(MappedFile, KeepsItsBytesWhenMovedAndWhenTheFileIsReplaced) {
  const TempFolder folder;
  MappedFile first(folder.write("a", "hello"));
  MappedFile second(folder.write("b", "other"));
  atomic_write(folder / "a", "replaced");
  second = std::move(first);
  EXPECT_EQ(text_of(second), "hello");
  const MappedFile third(std::move(second));
  EXPECT_EQ(text_of(third), "hello");
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { MappedFile(folder / "pipe"); }), HasSubstr("regular file"));
  EXPECT_THAT(error_of([&] { RandomAccessFile(folder / "pipe"); }), HasSubstr("regular file"));
  EXPECT_THAT(error_of([&] { MappedFile{folder.path()}; }), HasSubstr("expected a regular file"));
  EXPECT_THAT(error_of([&] { MappedFile{folder / "none"}; }), HasSubstr("No such file"));
}

std::string text_at(const RandomAccessFile& file, std::int64_t offset, std::size_t size) {
  std::string text(size, '?');
  file.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(RandomAccessFile, ReadsAnyPartAlsoWhenMovedAndWhenTheFileIsReplaced) {
  const TempFolder folder;
  RandomAccessFile first(folder.write("a", "hello")), second(folder.write("b", ""));
  EXPECT_EQ(first.size(), 5);
  EXPECT_EQ(second.size(), 0);
  EXPECT_EQ(text_at(second, 0, 0), "");
  atomic_write(folder / "a", "other");
  second = std::move(first);
  const RandomAccessFile third(std::move(second));
  third.will_need(0, 100);
  EXPECT_EQ(text_at(third, 0, 5), "hello");
  EXPECT_EQ(text_at(third, 3, 2), "lo");
  EXPECT_EQ(third.path(), folder / "a");
}

TEST(RandomAccessFile, SaysWhereAFileEndsTooEarly) {
  const TempFolder folder;
  const RandomAccessFile file(folder.write("a", "hello"));
  EXPECT_THAT(error_of([&] { text_at(file, 3, 4); }),
              AllOf(HasSubstr("/a: expected 2 bytes at 5"), HasSubstr("cut short")));
  EXPECT_THAT(error_of([&] { RandomAccessFile{folder.path()}; }),
              HasSubstr("expected a regular file"));
  EXPECT_THAT(error_of([&] { RandomAccessFile{folder / "none"}; }), HasSubstr("No such file"));
}

}  // namespace
}  // namespace xsa
