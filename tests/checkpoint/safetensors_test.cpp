#include "xsa/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string_view>

#include "tests/checkpoint/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/hash.h"
#include "xsa/base/rng.h"

namespace xsa::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Shape = std::vector<std::int64_t>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A file of this header, with its length before it and `data` behind it; padded as the format
/// wants it, so that the data is aligned.
std::string file_of(std::string header, std::string_view data) {
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  return file + header + std::string(data);
}

std::vector<TensorData> parse(const std::string& file) {
  return parse_safetensors(bytes_of(file), "hostile.safetensors");
}

/// What parse says against a header with 8 bytes of data.
std::string complaint(const std::string& header) {
  try {
    parse(file_of(header, std::string(8, '\0')));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

/// Tensors with memory of their own.
class Tensors {
 public:
  void add(const std::string& name, const std::string& type, Shape shape, std::string bytes) {
    memory_.push_back(std::make_unique<std::string>(std::move(bytes)));
    tensors_.push_back({name, type, std::move(shape), bytes_of(*memory_.back())});
  }
  const std::vector<TensorData>& get() const { return tensors_; }

 private:
  std::vector<std::unique_ptr<std::string>> memory_;
  std::vector<TensorData> tensors_;
};

std::string random_bytes(Rng& rng, std::int64_t count) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes += static_cast<char>(rng.below(2));  // BOOL's too
  return bytes;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Made with the Python package: safetensors 0.8.0, safetensors.numpy.save of
///   {"b": float32 [[1, -2.5, 0.25]], "a": int64 zeros (0, 2), "flag": bool True,
///    "half": float16 [1, 2], "é": uint8 7, "d": float64 3.5}, metadata {"format": "pt"}.
std::string golden_file() {
  using namespace std::string_literals;
  return "p\x01\0\0\0\0\0\0"s
         R"({"__metadata__":{"format":"pt"},)"
         R"("a":{"dtype":"I64","shape":[0,2],"data_offsets":[0,0]},)"
         R"("d":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
         R"("b":{"dtype":"F32","shape":[1,3],"data_offsets":[8,20]},)"
         R"("half":{"dtype":"F16","shape":[2],"data_offsets":[20,24]},)"
         "\"\xc3\xa9\":"
         R"({"dtype":"U8","shape":[],"data_offsets":[24,25]},)"
         R"("flag":{"dtype":"BOOL","shape":[],"data_offsets":[25,26]}}   )"
         "\0\0\0\0\0\0\x0c@\0\0\x80?\0\0 \xc0\0\0\x80>\0<\0@\x07\x01"s;
}

Tensors golden_tensors() {
  Tensors tensors;
  tensors.add("b", "F32", {1, 3}, raw<float>({1.0F, -2.5F, 0.25F}));
  tensors.add("a", "I64", {0, 2}, "");
  tensors.add("flag", "BOOL", {}, "\x01");
  tensors.add("half", "F16", {2}, raw<std::uint16_t>({0x3c00, 0x4000}));
  tensors.add("\xc3\xa9", "U8", {}, "\x07");
  tensors.add("d", "F64", {}, raw<double>({3.5}));
  return tensors;
}

TEST(Safetensors, WritesTheSameBytesAsThePythonPackage) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "golden.safetensors";
  const std::string hash = write_safetensors(path, golden_tensors().get(), {{"format", "pt"}});
  EXPECT_EQ(read_file(path), golden_file());
  EXPECT_EQ(hash, sha256(bytes_of(golden_file())));
}

TEST(Safetensors, ReadsAFileOfThePythonPackage) {
  const std::string file = golden_file();
  std::map<std::string, std::string> metadata;
  const std::vector<TensorData> tensors = parse_safetensors(bytes_of(file), "golden", &metadata);
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(tensors.size(), 6U);
  EXPECT_EQ(tensors[2].name, "b");
  EXPECT_EQ(tensors[2].type, "F32");
  EXPECT_EQ(tensors[2].shape, Shape({1, 3}));
  float values[3];
  ASSERT_EQ(tensors[2].bytes.size(), sizeof values);
  std::memcpy(values, tensors[2].bytes.data(), sizeof values);
  EXPECT_THAT(values, ElementsAre(1.0F, -2.5F, 0.25F));
}

TEST(Safetensors, ManyTensorsOfEveryTypeAndOddShapesComeBackAligned) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "many.safetensors";
  Rng rng(1);
  Tensors tensors;
  const std::vector<Shape> shapes = {{},     {0},    {1},          {7},
                                     {3, 5}, {0, 9}, {2, 3, 1, 5}, {1, 1, 1, 1, 1}};
  const std::vector<std::string> types = {"F64", "F32", "F16", "BF16", "I64",
                                          "I32", "I16", "I8",  "U8",   "BOOL"};
  for (int i = 0; i < 500; ++i) {
    const std::string& type = types[rng.below(types.size())];
    const Shape& shape = shapes[rng.below(shapes.size())];
    std::int64_t bytes = element_size(type);
    for (const std::int64_t size : shape) bytes *= size;
    tensors.add(cat("layer ", i, "\n\"\\/é"), type, shape, random_bytes(rng, bytes));
  }
  write_safetensors(path, tensors.get());
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), tensors.get().size());
  for (const TensorData& expected : tensors.get()) {
    const TensorData& read = file.at(expected.name);
    EXPECT_EQ(read.type, expected.type);
    EXPECT_EQ(read.shape, expected.shape);
    EXPECT_TRUE(std::ranges::equal(read.bytes, expected.bytes)) << expected.name;
    const auto address = reinterpret_cast<std::uintptr_t>(read.bytes.data());
    EXPECT_TRUE(read.bytes.empty() ||
                address % static_cast<std::uintptr_t>(element_size(read.type)) == 0);
  }
}

TEST(Safetensors, NoTensorsAtAllIsAFineFile) {
  const TempFolder folder;
  write_safetensors(folder.path() / "empty", {});
  const SafetensorsFile file(folder.path() / "empty");
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_TRUE(file.metadata().empty());
}

TEST(Safetensors, ALargeFileIsHashedWhileItIsWritten) {
  const TempFolder folder;
  Tensors tensors;
  std::string data((5 << 20) + 3, 'x');
  tensors.add("large", "U8", {std::ssize(data)}, data);
  const std::string hash = write_safetensors(folder.path() / "large", tensors.get());
  EXPECT_EQ(hash, sha256(bytes_of(read_file(folder.path() / "large"))));
}

TEST(Safetensors, AnUnknownNameIsAnErrorWithTheNearestMatch) {
  const TempFolder folder;
  write_safetensors(folder.path() / "golden", golden_tensors().get());
  const SafetensorsFile file(folder.path() / "golden");
  EXPECT_THAT([&] { file.at("hafl"); },
              ThrowsMessage<Error>(AllOf(HasSubstr((folder.path() / "golden").string()),
                                         HasSubstr("no tensor 'hafl'"),
                                         HasSubstr("did you mean 'half'?"))));
}

TEST(Safetensors, KnowsTheSizesOfItsTypes) {
  EXPECT_EQ(element_size("F64"), 8);
  EXPECT_EQ(element_size("BF16"), 2);
  EXPECT_EQ(element_size("BOOL"), 1);
  EXPECT_EQ(element_size("F8_E4M3"), 0);
  EXPECT_EQ(element_size(""), 0);
}

TEST(SafetensorsWriter, RefusesWhatNoReaderCouldRead) {
  const TempFolder folder;
  const auto refused = [&](const std::string& name, const std::string& type, Shape shape,
                           const std::string& bytes) {
    Tensors tensors;
    tensors.add("first", "U8", {}, "x");
    tensors.add(name, type, std::move(shape), bytes);
    EXPECT_THROW(write_safetensors(folder.path() / "refused", tensors.get()), Error) << name;
  };
  refused("unknown type", "F8", {1}, "x");
  refused("too few bytes", "F32", {2}, "1234");
  refused("negative", "U8", {-1, -1}, "x");
  refused("overflow", "U8", {1LL << 32, 1LL << 32}, "");
  refused("first", "U8", {}, "twice");
  refused("__metadata__", "U8", {}, "x");
  refused("not UTF-8 \xff", "U8", {}, "x");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "refused"));
}

TEST(SafetensorsWriter, AFullDiskIsAClearError) {
  EXPECT_THAT([] { write_safetensors("/dev/full", golden_tensors().get()); },
              ThrowsMessage<Error>("/dev/full: cannot write: No space left on device"));
}

TEST(SafetensorsWriter, AMissingFolderIsAClearError) {
  EXPECT_THAT([] { write_safetensors("/nowhere/file", {}); },
              ThrowsMessage<Error>("/nowhere/file: cannot create: No such file or directory"));
}

TEST(HostileSafetensors, ALengthBeyondTheFileIsRefused) {
  using namespace std::string_literals;
  for (const std::string& file :
       {""s, "1234567"s, "\xff\xff\xff\xff\xff\xff\xff\xff"s, "\x01\0\0\0\0\0\0\0"s,
        "\0\0\0\0\0\0\0\0"s, "\xf8\xff\xff\xff\xff\xff\xff\xff{}"s, "\x03\0\0\0\0\0\0\0{}"s})
    EXPECT_THAT([&] { parse(file); }, ThrowsMessage<Error>(HasSubstr("hostile.safetensors: ")));
}

TEST(HostileSafetensors, AHeaderAboveTheBoundIsRefusedUnread) {
  std::string file(8 + 100'000'001, ' ');
  const std::uint64_t length = 100'000'001;
  std::memcpy(file.data(), &length, sizeof length);
  EXPECT_THAT([&] { parse(file); }, ThrowsMessage<Error>(HasSubstr("at most 100000000 bytes")));
}

TEST(HostileSafetensors, AHeaderThatIsNotTheFormatsJsonIsRefused) {
  const std::string good = R"("t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})";
  ASSERT_EQ(complaint("{" + good + "}"), "nothing");
  for (const std::string& header : {
           std::string("{"),
           std::string("[]"),
           std::string(" {") + good + "}",
           std::string("\xef\xbb\xbf{") + good + "}",
           "{" + good + "}x",
           "{" + good + "}{}",
           "{" + good + ",}",
           std::string("{\"t\":3}"),
           std::string("{\"t\":null}"),
           std::string("{\"t\":[]}"),
           std::string("{\"\xff\":{}}"),
           std::string(R"({"t":{"dtype":"U8","shape":[8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":8,"data_offsets":[0,8]}})"),
           std::string(R"({"t":{"dtype":8,"shape":[8],"data_offsets":[0,8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":[[8]],"data_offsets":[0,8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":["8"],"data_offsets":[0,8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":[8.0],"data_offsets":[0,8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":[true],"data_offsets":[0,8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8,8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0]}})"),
           std::string(
               R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[],"data_offsets":[0,8]}})"),
           std::string(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"more":1}})"),
           "{\"__metadata__\":{\"a\":1}," + good + "}",
           "{\"__metadata__\":{\"a\":{}}," + good + "}",
           "{\"__metadata__\":\"a\"," + good + "}",
           "{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}," + good + "}",
           "{\"__metadata__\":{},\"__metadata__\":{}," + good + "}",
       })
    EXPECT_NE(complaint(header), "nothing") << header;
}

TEST(HostileSafetensors, AnErrorNamesFileTensorAndExpectation) {
  EXPECT_THAT(complaint(R"({"t":{"dtype":"F8","shape":[8],"data_offsets":[0,8]}})"),
              AllOf(HasSubstr("hostile.safetensors: tensor 't'"), HasSubstr("unknown type 'F8'"),
                    HasSubstr("I64 F64 F32")));
  EXPECT_THAT(complaint(R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"),
              HasSubstr("expected 12 bytes by its shape and type, got data_offsets of 8"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                        R"("a":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})"),
              HasSubstr("the key 'a' twice"));
  EXPECT_THAT(complaint(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,-8]}})"),
              HasSubstr("a negative number"));
  EXPECT_THAT(complaint("{\"" + std::string(1'000'000, 'n') + "\":1}").size(), testing::Lt(1000U));
}

TEST(HostileSafetensors, OffsetsMustCoverTheDataOnceAndStayInside) {
  const auto two = [](const std::string& a, const std::string& b) {
    return complaint(R"({"a":{"dtype":"U8","shape":[)" + a + R"(]},"b":{"dtype":"U8","shape":[)" +
                     b + "]}}");
  };
  ASSERT_EQ(two(R"(4],"data_offsets":[0,4)", R"(4],"data_offsets":[4,8)"), "nothing");
  ASSERT_EQ(two(R"(4],"data_offsets":[4,8)", R"(4],"data_offsets":[0,4)"), "nothing");
  EXPECT_THAT(two(R"(4],"data_offsets":[0,4)", R"(3],"data_offsets":[5,8)"), HasSubstr("no holes"));
  EXPECT_THAT(two(R"(4],"data_offsets":[0,4)", R"(5],"data_offsets":[3,8)"), HasSubstr("overlap"));
  EXPECT_THAT(two(R"(4],"data_offsets":[0,4)", R"(4],"data_offsets":[0,4)"), HasSubstr("overlap"));
  EXPECT_THAT(two(R"(4],"data_offsets":[0,4)", R"(3],"data_offsets":[4,7)"),
              HasSubstr("expected 7 bytes of data, got 8"));
  EXPECT_THAT(two(R"(4],"data_offsets":[0,4)", R"(5],"data_offsets":[4,9)"),
              HasSubstr("within the file's 8 bytes"));
  EXPECT_THAT(two(R"(4],"data_offsets":[4,0)", R"(4],"data_offsets":[4,8)"), HasSubstr("in order"));
}

TEST(HostileSafetensors, ShapesThatOverflowAreRefused) {
  const auto shaped = [](const std::string& shape) {
    return complaint(R"({"t":{"dtype":"F64","shape":[)" + shape + R"(],"data_offsets":[0,8]}})");
  };
  ASSERT_EQ(shaped("1,1"), "nothing");
  EXPECT_THAT(shaped("2305843009213693953"), HasSubstr("more elements"));  // * 8 wraps to 8
  EXPECT_THAT(shaped("4294967296,4294967296"), HasSubstr("more elements"));
  EXPECT_THAT(shaped("0,9223372036854775807,9223372036854775807"), HasSubstr("more elements"));
  EXPECT_THAT(shaped("9223372036854775808"), HasSubstr("a dimension above 2^63"));
  EXPECT_THAT(shaped("18446744073709551617"), HasSubstr("a number above 2^64"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_THAT(shaped(ones), HasSubstr("more than 64 dimensions"));
}

TEST(HostileSafetensors, UnalignedDataIsRefusedWithARemedy) {
  EXPECT_THAT(complaint(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
              testing::Eq("nothing"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]},)"
                        R"("c":{"dtype":"U8","shape":[2],"data_offsets":[6,8]}})"),
              AllOf(HasSubstr("tensor 'b'"), HasSubstr("at a multiple of 4 bytes"),
                    HasSubstr("write the file again")));
}

TEST(HostileSafetensors, ABoolThatIsNeitherTrueNorFalseIsRefused) {
  const std::string header = R"({"t":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  EXPECT_NO_THROW(parse(file_of(header, std::string("\0\x01", 2))));
  EXPECT_THROW(parse(file_of(header, std::string("\0\x02", 2))), Error);
}

TEST(HostileSafetensors, DeepNestingCostsNoStack) {
  EXPECT_NE(complaint("{\"t\":" + std::string(1'000'000, '[')), "nothing");
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "{\"t\":";
  EXPECT_NE(complaint(nested), "nothing");
}

/// One random sabotage of a valid file.
std::string corrupted(std::string file, Rng& rng) {
  const std::uint64_t header_end = 8 + 0x170;
  static const std::vector<std::string> kNumbers = {"0",
                                                    "1",
                                                    "-1",
                                                    "7",
                                                    "8",
                                                    "26",
                                                    "4294967296",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "18446744073709551615",
                                                    "1e308",
                                                    "1e999",
                                                    "null",
                                                    "[]",
                                                    "{}",
                                                    "\"\""};
  for (std::uint64_t edits = 1 + rng.below(3); edits > 0 && !file.empty(); --edits) {
    switch (rng.below(6)) {
      case 0:  // a bit, anywhere
        file[rng.below(file.size())] ^= static_cast<char>(1 << rng.below(8));
        break;
      case 1:  // a bit of the header
        file[rng.below(std::min<std::uint64_t>(file.size(), header_end))] ^=
            static_cast<char>(1 << rng.below(8));
        break;
      case 2:
        file.resize(rng.below(file.size() + 1));
        break;
      case 3: {  // another length
        const std::uint64_t length = rng.next() >> rng.below(64);
        std::memcpy(file.data(), &length, std::min(file.size(), sizeof length));
        break;
      }
      case 4: {  // another number, the header's length made to fit
        const std::size_t at = file.find_first_of("0123456789", 8 + rng.below(header_end));
        if (at >= header_end || at == std::string::npos) break;
        const std::size_t end = file.find_first_not_of("0123456789", at);
        file.replace(at, end - at, kNumbers[rng.below(kNumbers.size())]);
        std::uint64_t length = 0;
        for (std::size_t i = at; i < file.size() && file[i] != '\0'; ++i) length = i + 1 - 8;
        std::memcpy(file.data(), &length, sizeof length);
        break;
      }
      default: {  // a piece copied elsewhere
        const std::size_t from = rng.below(file.size()), to = rng.below(file.size());
        const std::string piece = file.substr(from, rng.below(40));
        file.replace(to, std::min(piece.size(), file.size() - to), piece);
      }
    }
  }
  return file;
}

TEST(HostileSafetensors, TwentyThousandCorruptionsParseOrThrow) {
  Rng rng(20260309);
  int whole = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = corrupted(golden_file(), rng);
    // Memory of exactly this size, so that a sanitizer sees a read behind its end.
    const std::vector<char> file(text.begin(), text.end());
    try {
      std::int64_t sum = 0;
      for (const TensorData& tensor :
           parse_safetensors(std::as_bytes(std::span(file)), "corrupted"))
        for (const std::byte value : tensor.bytes) sum += std::to_integer<int>(value);
      EXPECT_GE(sum, 0);
      ++whole;
    } catch (const Error&) {
      ++refused;
    }
  }
  // Both happen: bits of the data may flip unseen here, those of the header hardly.
  EXPECT_GT(whole, 100);
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace xsa::checkpoint
