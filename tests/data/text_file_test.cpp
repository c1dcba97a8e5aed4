#include "xsa/data/text_file.h"

#include <gmock/gmock.h>

#include <span>

#include "tests/support/temp_folder.h"
#include "xsa/base/hash.h"

namespace xsa::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

SourceFile file_of(const std::filesystem::path& path) {
  return {path.filename().string(), path, static_cast<std::int64_t>(file_size(path)), 0};
}

std::string error_with(std::string_view bytes) {
  const TempFolder folder;
  const SourceFile file = file_of(folder.write("a.txt", bytes));
  return error_of([&] { check_and_hash(file, [](std::int64_t) {}); });
}

TEST(ForEachPiece, GivesExactlyTheBytesAskedForInSmallPieces) {
  const TempFolder folder;
  std::string text(5 << 19, '\0');  // two and a half MiB
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
  const SourceFile file = file_of(folder.write("a.txt", text));
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, file.bytes},
                                   {3, 1'500'000},
                                   {1 << 20, 2 << 20},
                                   {7, 7}}) {
    std::string read;
    for_each_piece(file, begin, end, [&](std::string_view piece) {
      EXPECT_LE(piece.size(), 1u << 20);
      read += piece;
    });
    EXPECT_TRUE(read == std::string_view(text).substr(static_cast<std::size_t>(begin),
                                                      static_cast<std::size_t>(end - begin)))
        << begin << " to " << end;
  }
}

TEST(ForEachPiece, SaysThatAFileBecameShorterOrWentAway) {
  const TempFolder folder;
  const SourceFile file = file_of(folder.write("a.txt", "12345"));
  folder.write("a.txt", "123");
  const auto read = [&] { for_each_piece(file, 0, file.bytes, [](std::string_view) {}); };
  EXPECT_THAT(error_of(read), AllOf(HasSubstr("a.txt"), HasSubstr("shorter")));
  remove(file.path);
  EXPECT_THAT(error_of(read), AllOf(HasSubstr("a.txt"), HasSubstr("No such file")));
  create_directory(file.path);
  EXPECT_THAT(error_of(read), AllOf(HasSubstr("a.txt"), HasSubstr("directory")));
}

TEST(CheckAndHash, HashesTheWholeFileAndReportsItsBytes) {
  const TempFolder folder;
  const std::string text = std::string(3 << 20, 'x') + "\n";
  const SourceFile file = file_of(folder.write("a.txt", text));
  std::int64_t reported = 0;
  EXPECT_EQ(check_and_hash(file, [&](std::int64_t bytes) { reported += bytes; }),
            sha256(std::as_bytes(std::span(text))));
  EXPECT_EQ(reported, file.bytes);
}

TEST(CheckAndHash, RefusesANulByteAnywhere) {
  std::string late(2 << 20, 'x');
  late.back() = '\0';
  EXPECT_THAT(error_with(late),
              AllOf(HasSubstr("a.txt"), HasSubstr("a NUL byte at 2097151"), HasSubstr("iconv")));
  EXPECT_THAT(error_with(std::string_view("\0", 1)), HasSubstr("NUL"));
  EXPECT_THAT(error_with(std::string_view("\xFF\xFEh\0i\0", 6)),
              AllOf(HasSubstr("UTF-16"), HasSubstr("iconv -f UTF-16 -t UTF-8")));
}

TEST(CheckAndHash, AcceptsAtMostATenthThatIsNotUtf8) {
  EXPECT_EQ(error_with("nine fine\xFF"), "");
  EXPECT_THAT(error_with("not nine\xFF"), HasSubstr("1 of 9 bytes are not UTF-8"));
  EXPECT_EQ(error_with("Die Gr\xF6\xDF"
                       "e der Stra\xDF"
                       "e in M\xFCnchen und Umgebung"),
            "")
      << "Latin-1";
  EXPECT_NE(error_with("\xD0\xD2\xC9\xD7\xC5\xD4 \xCD\xC9\xD2"), "") << "KOI8-R";
}

}  // namespace
}  // namespace xsa::data
