#include "xsa/data/records.h"

#include <arrow/record_batch.h>
#include <gmock/gmock.h>

#include "tests/data/made_files.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

std::vector<Json> records_of(const fs::path& path) {
  std::vector<Json> records;
  for_each_record(path, [&](std::int64_t index, Json&& record) {
    EXPECT_EQ(index, static_cast<std::int64_t>(records.size()));
    records.push_back(std::move(record));
  });
  return records;
}

/// `keep` bytes of the file stay.
fs::path truncated(const fs::path& path, std::uintmax_t keep) {
  fs::resize_file(path, keep);
  return path;
}

const char* const kMixed[] = {
    R"({"flag":true,"small":-7,"large":18446744073709551615,"real":0.5,"text":"a","long_text":"b",)"
    R"("kind":"x","pair":[1,2],"choices":{"text":["one","two"],"label":["A","B"]},"day":"1970-01-01"})",
    R"({"flag":null,"small":null,"large":null,"real":null,"text":null,"long_text":null,"kind":null,)"
    R"("pair":null,"choices":null,"day":null})",
    R"({"flag":false,"small":1,"large":2,"real":1e+300,"text":"","long_text":"é","kind":"y",)"
    R"("pair":[3,null],"choices":{"text":[],"label":null},"day":"1971-01-01"})"};

TEST(Records, EveryColumnOfParquetAndArrowBecomesJson) {
  const TempFolder folder;
  write_parquet(folder / "a.parquet", *mixed_table(), {.group_rows = 2});
  write_arrow_stream(folder / "stream.arrow", *mixed_table(), 1);
  write_arrow_file(folder / "file.arrow", *mixed_table(), 2);
  for (const char* name : {"a.parquet", "stream.arrow", "file.arrow"}) {
    const std::vector<Json> records = records_of(folder / name);
    ASSERT_EQ(records.size(), 3u) << name;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(records[i].dump(), kMixed[i]) << name;
  }
}

TEST(Records, JsonLinesComePlainAndPacked) {
  const TempFolder folder;
  const std::string lines = "{\"a\": 1}\n\n  \r\n{\"b\": [\"\\u00e9\", null]}\r\n{\"c\": {}}";
  for (const auto& path :
       {folder.write("a.jsonl", lines), folder.write("b.json.gz", gzipped(lines)),
        folder.write("c.ndjson.zst", zstandard(lines)),
        folder.write("two.jsonl.gz", gzipped(lines.substr(0, 12)) + gzipped(lines.substr(12))),
        folder.write("two.jsonl.zst",
                     zstandard(lines.substr(0, 12)) + zstandard(lines.substr(12)))}) {
    const std::vector<Json> records = records_of(path);
    ASSERT_EQ(records.size(), 3u) << path;
    EXPECT_EQ(records[1].dump(), R"({"b":["é",null]})");
  }
  EXPECT_TRUE(records_of(folder.write("empty.jsonl", "")).empty());
  EXPECT_TRUE(records_of(folder.write("empty.jsonl.gz", gzipped(""))).empty());
}

TEST(Records, KindsAreToldByTheName) {
  EXPECT_EQ(kind_of("a/b.parquet"), FileKind::kParquet);
  EXPECT_EQ(kind_of("a.jsonl.zst"), FileKind::kJsonLines);
  EXPECT_EQ(kind_of("a.arrow"), FileKind::kArrow);
  EXPECT_EQ(kind_of("a.txt.gz"), FileKind::kText);
  EXPECT_EQ(kind_of("parquet"), FileKind::kText);
  EXPECT_TRUE(is_record_file("a.json"));
  EXPECT_FALSE(is_record_file("a.md"));
  EXPECT_THAT(error_of([] { records_of("a.txt"); }), HasSubstr("expected a file of records"));
}

TEST(Records, ABrokenLineIsNamed) {
  const TempFolder folder;
  const auto error = [&](std::string_view lines) {
    return error_of([&] { records_of(folder.write("a.jsonl", lines)); });
  };
  EXPECT_THAT(error("{}\n\n{\"a\": }\n"),
              AllOf(HasSubstr("a.jsonl: row 1 (line 3)"), HasSubstr("expected JSON")));
  EXPECT_THAT(error("{}\n[1]"), AllOf(HasSubstr("row 1"), HasSubstr("got array")));
  EXPECT_THAT(error("{\"a\": \"\xff\"}"), HasSubstr("UTF-8"));
}

TEST(Records, ATruncatedFileIsRefused) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "{\"number\": " + cat(i * 7919 % 10007) + "}\n";
  for (const auto& [name, content] :
       {std::pair{"a.jsonl.gz", gzipped(text)}, std::pair{"a.jsonl.zst", zstandard(text)}}) {
    for (const std::size_t cut : {std::size_t{5}, content.size() / 2, content.size() - 1}) {
      const fs::path path = folder.write(name, content.substr(0, cut));
      EXPECT_THAT(error_of([&] { records_of(path); }),
                  AllOf(HasSubstr(name), HasSubstr("truncated"), HasSubstr("fetch the file again")))
          << cut;
    }
  }
  write_parquet(folder / "a.parquet", *mixed_table());
  write_arrow_file(folder / "file.arrow", *mixed_table());
  for (const char* name : {"a.parquet", "file.arrow"}) {
    const fs::path path = truncated(folder / name, fs::file_size(folder / name) - 9);
    EXPECT_THAT(error_of([&] { records_of(path); }),
                AllOf(HasSubstr(name), HasSubstr("cannot read")));
  }
}

TEST(Records, AnArrowStreamIsTruncatedWhereverItIsCut) {
  const TempFolder folder;
  const fs::path path = folder / "a.arrow";
  write_arrow_stream(path, *table_of({"one", "two", "three"}), 1);
  const std::string whole = read_file(path);
  EXPECT_EQ(records_of(path).size(), 3u);
  for (std::size_t size = 0; size < whole.size(); size += 8) {
    folder.write("a.arrow", whole.substr(0, size));
    EXPECT_THAT(error_of([&] { records_of(path); }), HasSubstr("a.arrow")) << size;
  }
}

TEST(Records, ADamagedFileIsAnErrorAndNoCrash) {
  const TempFolder folder;
  write_parquet(folder / "a.parquet", *mixed_table());
  write_arrow_file(folder / "file.arrow", *mixed_table());
  write_arrow_stream(folder / "stream.arrow", *mixed_table());
  for (const char* name : {"a.parquet", "file.arrow", "stream.arrow"}) {
    const std::string whole = read_file(folder / name);
    int refused = 0, read = 0;
    for (std::size_t i = 0; i < whole.size(); i += 13) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0xA5);
      std::size_t records = 0;
      const std::string error =
          error_of([&] { records = records_of(folder.write(name, damaged)).size(); });
      if (error.empty()) {  // the damage is to a value, or to what nobody reads
        EXPECT_EQ(records, 3u) << name << ", byte " << i;
        ++read;
      } else {
        EXPECT_THAT(error, HasSubstr(name)) << "byte " << i;
        ++refused;
      }
    }
    EXPECT_GT(refused, 100) << name;
    EXPECT_GT(read, 30) << name;
  }
}

TEST(Records, DeepNestingIsAnErrorAndNoCrash) {
  const TempFolder folder;
  const auto nested = [](int depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}\n";
  };
  EXPECT_EQ(records_of(folder.write("a.jsonl", nested(99))).size(), 1);
  for (const int depth : {101, 1'000'000})
    EXPECT_THAT(error_of([&] { records_of(folder.write("a.jsonl", nested(depth))); }),
                HasSubstr("row 0 (line 1): expected at most 100 levels of nesting"));
}

TEST(Records, WhatPythonWritesForNoNumberIsNull) {
  const TempFolder folder;
  const auto records = records_of(folder.write(
      "a.jsonl", R"({"a": NaN, "b": [-Infinity, Infinity, "NaN \" Infinity"], "c": "x"})"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].dump(), R"({"a":null,"b":[null,null,"NaN \" Infinity"],"c":"x"})");
}

TEST(Records, AnArrayUtf16AndAPointerAreCalledWhatTheyAre) {
  const TempFolder folder;
  const auto refusal = [&](std::string_view bytes) {
    return error_of([&] { records_of(folder.write("a.jsonl", bytes)); });
  };
  EXPECT_THAT(refusal("[{\"a\": 1}]"), AllOf(HasSubstr("got array"), HasSubstr("jq -c '.[]'")));
  EXPECT_THAT(refusal("[\n {\"a\": 1}\n]"), HasSubstr("got array"));
  EXPECT_THAT(refusal(std::string_view("\xff\xfe{\0", 4)), HasSubstr("UTF-16"));
  for (const char* name : {"a.jsonl", "a.parquet", "a.arrow"}) {
    folder.write(name, "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n");
    EXPECT_THAT(error_of([&] { records_of(folder / name); }),
                AllOf(HasSubstr(name), HasSubstr("git lfs pull")));
  }
}

TEST(Records, WhatTheCallerThrowsPassesThrough) {
  const TempFolder folder;
  write_parquet(folder / "a.parquet", *mixed_table());
  const auto stop = [](std::int64_t, Json&&) { throw UsageError("enough"); };
  EXPECT_EQ(error_of<UsageError>([&] { for_each_record(folder / "a.parquet", stop); }), "enough");
}

TEST(Records, AMissingFileIsNamed) {
  for (const char* name : {"none.jsonl", "none.parquet", "none.arrow"})
    EXPECT_THAT(error_of([&] { records_of(name); }), HasSubstr(name));
}

}  // namespace
}  // namespace xsa::data
