#include "xsa/data/corpus.h"

#include <arrow/record_batch.h>
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/data/corpus_fixture.h"
#include "xsa/text/tokenizer.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;

TEST_F(Corpus, EveryKindOfFileGivesTheSameTokens) {
  const Texts texts = {"one", "", "two\nlines", "\xC3\xA9t\xC3\xA9", "last"};
  std::string lines;
  for (const auto& text : texts) lines += line_of(*text);
  const auto table = table_of(texts);
  write_parquet(folder_ / "a.parquet", *table, {.group_rows = 2});
  write_parquet(folder_ / "b.parquet", *table, {.dictionary = false, .codec = "snappy"});
  write_arrow_stream(folder_ / "c.arrow", *table, 2);
  write_arrow_file(folder_ / "d.arrow", *table, 3);
  folder_.write("e.jsonl", lines);
  folder_.write("f.jsonl.gz", gzipped(lines));
  folder_.write("g.ndjson.zst", zstandard(lines));
  folder_.write("mislabelled.jsonl", gzipped(lines));
  for (const char* name : {"a.parquet", "b.parquet", "c.arrow", "d.arrow", "e.jsonl", "f.jsonl.gz",
                           "g.ndjson.zst", "mislabelled.jsonl"}) {
    CorpusConfig how = config({name}, cat("out-", name));
    const Json manifest = prepare_corpus(how);
    EXPECT_EQ(text_of(manifest, "train", cat("out-", name)),
              "|one|two\nlines|\xC3\xA9t\xC3\xA9|last")
        << name;
    EXPECT_EQ(manifest["counts"]["rows"], 5);
    EXPECT_EQ(manifest["counts"]["empty_documents"], 1);
    EXPECT_EQ(manifest["train"]["documents"], 4);
    EXPECT_EQ(manifest["train"]["bytes"], 21);
    EXPECT_EQ(manifest["sources"][0]["rows"], 5);
    const std::string bytes = read_file(folder_ / name);
    EXPECT_EQ(manifest["sources"][0]["sha256"], sha256(std::as_bytes(std::span(bytes))));
  }
}

TEST_F(Corpus, TextFilesAreADocumentEachInTheOrderOfTheirPaths) {
  folder_.write("texts/b.txt", "second\n");
  folder_.write("texts/a/z.txt", "first");
  folder_.write("texts/c.txt.gz", gzipped("third"));
  folder_.write("texts/empty.txt", "");
  folder_.write("texts/.hidden", "never");
  EXPECT_EQ(prepared(config({"texts"})), "|first|second\n|third");
  EXPECT_EQ(prepared(config({"texts/c.txt.gz", "texts/b.txt", "texts/a/z.txt"}, "named")),
            "|first|second\n|third");
  EXPECT_EQ(prepared(config({"texts/{b,c}.*"}, "glob")), "|second\n|third");
}

TEST_F(Corpus, OfAFolderOneKindIsReadAndTheOthersAreListed) {
  folder_.write("set/README.md", "not a document");
  folder_.write("set/state.json", "{}");
  write_parquet(folder_ / "set/a.parquet", *table_of({"text"}));
  const Json manifest = prepare_corpus(config({"set"}));
  EXPECT_EQ(text_of(manifest, "train"), "|text");
  EXPECT_EQ(manifest["passed_over"].size(), 2u);
  EXPECT_THAT(manifest["passed_over"][0].get<std::string>(), HasSubstr("README.md"));
  CorpusConfig text = config({"set"}, "as-text");
  text.type = "text";
  EXPECT_EQ(prepared(text), "|not a document");
}

TEST_F(Corpus, ASingleTextIsHeldOutAtItsEnd) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += cat("line ", i, "\n");
  folder_.write("book.txt", text);
  CorpusConfig how = config({"book.txt"});
  how.validation_fraction = 0.1;
  const Json manifest = prepare_corpus(how);
  const std::string train = text_of(manifest, "train"), held = text_of(manifest, "validation");
  EXPECT_EQ(train.substr(1) + held.substr(1), text);
  EXPECT_NEAR(static_cast<double>(held.size()) / static_cast<double>(text.size()), 0.1, 0.02);
  EXPECT_EQ(manifest["held_out"], "the end of the text");
}

TEST_F(Corpus, ADocumentKeepsItsSideWhereverItStandsAndSoDoesItsCopy) {
  std::string forwards, backwards;
  for (int i = 0; i < 400; ++i) {
    const std::string line = line_of(cat("document ", i % 200));
    forwards += line;
    backwards = line + backwards;
  }
  folder_.write("a.jsonl", forwards);
  folder_.write("b.jsonl", backwards);
  const auto documents = [&](const char* name) {
    CorpusConfig how = config({name}, cat("of-", name));
    how.validation_fraction = 0.2;
    std::multiset<std::string> found;
    std::istringstream text(text_of(prepare_corpus(how), "validation", cat("of-", name)));
    for (std::string document; std::getline(text, document, '|');) found.insert(document);
    return found;
  };
  const auto held = documents("a.jsonl");
  EXPECT_EQ(held, documents("b.jsonl"));
  EXPECT_NEAR(static_cast<double>(held.size()), 80, 30);
  for (const std::string& document : held)
    EXPECT_TRUE(document.empty() || held.count(document) == 2) << document;
}

TEST_F(Corpus, BytesDoNotDependOnThreadsOrWhereItIsSaved) {
  std::map<std::string, std::string> first;
  for (const std::int64_t threads : {1, 2, 5}) {
    CorpusConfig how = many(cat("threads-", threads));
    how.threads = threads;
    how.save_mib = threads;
    const Json manifest = prepare_corpus(how);
    EXPECT_GT(manifest["train"]["shards"].size(), 5u);
    EXPECT_GT(manifest["validation"]["documents"], 50);
    const auto files = bytes_in(cat("threads-", threads));
    if (first.empty()) first = files;
    EXPECT_EQ(files, first) << threads;
  }
}

TEST_F(Corpus, ALongDocumentIsTheSameWholeAndInPieces) {
  const std::string text = made_text(1, 5'000'000);
  folder_.write("long.jsonl", line_of("short") + line_of(text) + line_of("end"));
  EXPECT_EQ(prepared(config({"long.jsonl"})), "|short|" + text + "|end");
  if (const std::string why = error_of([] { text::make_tokenizer("gpt2"); }); !why.empty())
    GTEST_SKIP() << why;
  CorpusConfig how = config({"long.jsonl"}, "gpt2");
  how.tokenizer = "gpt2";
  const Json manifest = prepare_corpus(how);
  const auto tokenizer = text::make_tokenizer("gpt2");
  std::vector<text::Token> expected;
  for (const std::string& document : {std::string("short"), text, std::string("end")}) {
    expected.push_back(tokenizer->end_of_text());
    tokenizer->encode(document, expected);
  }
  const Shard shard(folder_ / "gpt2/train-00000.bin");
  std::vector<std::uint16_t> ids(static_cast<std::size_t>(shard.size()));
  shard.read(0, ids);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), expected.begin(), expected.end()));
}

TEST_F(Corpus, BadRowsStopItOrAreCountedByKind) {
  const std::string lines =
      "{\"text\": \"good\"}\n{\"text\": \n{\"body\": \"x\"}\n{\"text\": null}\n{\"text\": 5}\n[1]\n"
      "{\"text\": \"\xff\"}\n" +
      line_of(std::string(2 << 20, 'x')) + "\n\n{\"text\": \"also good\"}";
  folder_.write("a.jsonl", lines);
  CorpusConfig how = config({"a.jsonl"});
  how.max_row_mib = 1;
  EXPECT_THAT(failure(how), AllOf(HasSubstr("a.jsonl: row 1: line 2: expected a value"),
                                  HasSubstr("--on-bad-row")));
  how.on_bad_row = "skip";  // continues
  const Json manifest = prepare_corpus(how);
  EXPECT_EQ(text_of(manifest, "train"), "|good|also good");
  const Json& bad = manifest["counts"]["bad_rows"];
  EXPECT_EQ(bad["broken"], 2);
  EXPECT_EQ(bad["no_text"], 2);
  EXPECT_EQ(bad["wrong_type"], 1);
  EXPECT_EQ(bad["invalid_utf8"], 1);
  EXPECT_EQ(bad["too_long"], 1);
  EXPECT_EQ(manifest["counts"]["rows"], 9);
  EXPECT_EQ(manifest["counts"]["bad_row_examples"].size(), 7u);
  EXPECT_EQ(manifest["counts"]["bad_row_examples"][0]["row"], 1);
}

TEST_F(Corpus, NullsAndInvalidUtf8InTablesAreBadRows) {
  const auto table = table_of({"good", std::nullopt, "\xC3", "end"});
  write_parquet(folder_ / "a.parquet", *table);
  write_arrow_stream(folder_ / "b.arrow", *table);
  for (const char* name : {"a.parquet", "b.arrow"}) {
    CorpusConfig how = config({name}, cat("of-", name));
    EXPECT_THAT(failure(how), AllOf(HasSubstr(name), HasSubstr("row 1: 'text' is null")));
    how.on_bad_row = "skip";
    const Json manifest = prepare_corpus(how);
    EXPECT_EQ(text_of(manifest, "train", cat("of-", name)), "|good|end");
    EXPECT_EQ(manifest["counts"]["bad_rows"]["no_text"], 1);
    EXPECT_EQ(manifest["counts"]["bad_rows"]["invalid_utf8"], 1);
  }
}

TEST_F(Corpus, ABadTextIsTakenBackWholeHoweverLongItIs) {
  folder_.write("set/a.txt", "good");
  folder_.write("set/b.txt", made_text(1, 3'000'000) + "\xff");
  folder_.write("set/c.txt",
                made_text(2, 1'500'000) + std::string(1, '\0') + made_text(3, 1'500'000));
  folder_.write("set/d.txt", "end");
  CorpusConfig how = config({"set"});
  EXPECT_THAT(failure(how), AllOf(HasSubstr("b.txt: expected UTF-8, got 1 bytes")));
  how.on_bad_row = "skip";
  how.shard_tokens = 1'000'000;
  how.overwrite = true;
  const Json manifest = prepare_corpus(how);
  EXPECT_EQ(text_of(manifest, "train"), "|good|end");
  EXPECT_EQ(manifest["counts"]["bad_rows"]["invalid_utf8"], 1);
  EXPECT_EQ(manifest["counts"]["bad_rows"]["binary"], 1);
  EXPECT_EQ(bytes_in("out").size(), 2u);
}

TEST_F(Corpus, ALongBadRowBehindShortOnesIsTakenBackAlone) {
  if (const std::string why = error_of([] { text::make_tokenizer("gpt2"); }); !why.empty())
    GTEST_SKIP() << why;
  std::string bad = R"({"text": ")";  // long as text, short as tokens
  for (int i = 0; i < 40'000; ++i) bad += std::string(60, '-') + " ";
  folder_.write("good.jsonl", line_of("good") + line_of("too") + line_of("end"));
  folder_.write("a.jsonl", line_of("good") + line_of("too") + bad + "\xff\"}\n" + line_of("end"));
  for (const char* format : {"llmc", "nanogpt"}) {
    const auto made_from = [&](const char* source) {
      CorpusConfig how = config({source}, cat(format, "-", source));
      how.tokenizer = "gpt2";
      how.format = format;
      how.on_bad_row = "skip";
      return prepare_corpus(how);
    };
    const Json manifest = made_from("a.jsonl");
    EXPECT_EQ(manifest["train"], made_from("good.jsonl")["train"]);
    EXPECT_EQ(manifest["counts"]["bad_rows"]["invalid_utf8"], 1);
    EXPECT_EQ(manifest["counts"]["rows"], 4);
  }
}

TEST_F(Corpus, RowsBeforeABadOneAreKept) {
  folder_.write("a.jsonl", line_of("one") + line_of("two") + line_of("three") +
                               "{\"text\": null}\n" + line_of("end"));
  CorpusConfig how = config({"a.jsonl"});
  EXPECT_THAT(failure(how), HasSubstr("row 3: line 4: 'text' is null"));
  EXPECT_EQ(read_json_file(how.output / "journal.json")["counts"]["rows"], 3);
  how.on_bad_row = "skip";
  EXPECT_EQ(prepared(how), "|one|two|three|end");
}

TEST_F(Corpus, ATextWithoutAPlaceToCutIsABadRow) {
  if (const std::string why = error_of([] { text::make_tokenizer("gpt2"); }); !why.empty())
    GTEST_SKIP() << why;
  folder_.write("a.jsonl", line_of("good") + line_of(std::string(20 << 20, 'x')) + line_of("end"));
  CorpusConfig how = config({"a.jsonl"});
  how.tokenizer = "gpt2";
  how.on_bad_row = "skip";
  const Json manifest = prepare_corpus(how);
  EXPECT_EQ(manifest["counts"]["bad_rows"]["too_long"], 1);
  EXPECT_EQ(manifest["counts"]["rows"], 3);
  EXPECT_EQ(manifest["train"]["documents"], 2);
}

TEST_F(Corpus, ATruncatedFileFailsAndKeepsWhatCameBefore) {
  std::string lines;
  for (std::uint64_t i = 0; i < 3000; ++i) lines += line_of(made_text(i, 1000));
  const std::string packed = gzipped(lines);
  folder_.write("a.jsonl.gz", packed.substr(0, packed.size() - 20'000));
  EXPECT_THAT(failure(config({"a.jsonl.gz"})),
              AllOf(HasSubstr("a.jsonl.gz"), HasSubstr("truncated")));
  const Json journal = read_json_file(folder_ / "out/journal.json");
  EXPECT_GT(journal["counts"]["rows"], 2000);
  write_parquet(folder_ / "b.parquet", *table_of({"text"}));
  fs::resize_file(folder_ / "b.parquet", fs::file_size(folder_ / "b.parquet") - 1);
  EXPECT_THAT(failure(config({"b.parquet"}, "b")), HasSubstr("b.parquet"));
  EXPECT_FALSE(fs::exists(folder_ / "b"));  // seen at the door
}

TEST_F(Corpus, AColumnThatIsNotThereIsSeenAtTheDoorWithTheNearestOne) {
  folder_.write("a.jsonl", "{\"id\": 1, \"content\": \"x\"}\n");
  write_parquet(folder_ / "b.parquet", *table_of({"x"}, "content"));
  write_arrow_stream(folder_ / "c.arrow", *table_of({"x"}, "content"));
  for (const char* name : {"a.jsonl", "b.parquet", "c.arrow"}) {
    CorpusConfig how = config({name});
    how.column = "contents";
    EXPECT_THAT(refusal(how), AllOf(HasSubstr(name), HasSubstr("no column 'contents'"),
                                    HasSubstr("did you mean 'content'?"),
                                    HasSubstr("columns of text: content (")));
    how.column = "id";
    EXPECT_THAT(failure(how), AllOf(HasSubstr(name), HasSubstr("'id': expected"))) << name;
    how.column = "content";
    how.output = folder_ / cat("of-", name);
    EXPECT_EQ(prepared(how), "|x");
  }
}

TEST_F(Corpus, EveryColumnThatIsOfferedCanBeTaken) {
  write_parquet(folder_ / "a.parquet", *mixed_table());
  write_arrow_stream(folder_ / "b.arrow", *mixed_table());
  write_arrow_file(folder_ / "c.arrow", *mixed_table(), 2);
  folder_.write("d.jsonl", R"({"text": "a", "long_text": "b", "kind": "x", "small": 1,)"
                           R"( "choices": {"text": ["one", "two"], "label": ["A", "B"]}})"
                           "\n"
                           R"({"text": null, "choices": null})"
                           "\n"
                           R"({"text": "", "choices": {"text": [], "label": null}, "pair": []})"
                           "\n");
  const std::map<std::string, std::string> texts = {{"text", "|a"},
                                                    {"long_text", "|b"},
                                                    {"kind", "|x"},
                                                    {"choices.text", "|one\ntwo"},
                                                    {"choices.label", "|A\nB"}};
  for (const std::string name : {"a.parquet", "b.arrow", "c.arrow", "d.jsonl"}) {
    CorpusConfig how = config({name}, "of-" + name);
    how.on_bad_row = "skip";
    how.column = "none";
    if (name == "d.jsonl") how.on_bad_row = "fail";
    const std::string message = refusal(how);
    how.on_bad_row = "skip";
    for (const auto& [column, text] : texts) {
      EXPECT_THAT(message, HasSubstr(column)) << name;
      how.column = column;
      how.overwrite = true;
      const std::string got = prepared(how);
      // The other rows: null, empty.
      EXPECT_EQ(got.substr(0, text.size()), text) << name << " " << column;
    }
    EXPECT_THAT(message, ::testing::Not(HasSubstr("small"))) << "numbers are not offered";
  }
}

TEST_F(Corpus, AListOfRecordsIsReadByPath) {
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += cat(R"({"id": )", i, R"(, "turns": [{"who": "a", "says": "one )", i,
                 R"("}, {"who": "b", "says": null}, {"says": "two\u0021"}]})", "\n");
  folder_.write("a.jsonl", lines);
  CorpusConfig how = config({"a.jsonl"});
  how.column = "turns.says";
  const std::string text = prepared(how);
  EXPECT_TRUE(text.starts_with("|one 0\ntwo!|one 1\ntwo!|")) << text.substr(0, 60);
  EXPECT_TRUE(text.ends_with("|one 299\ntwo!"));
  how.column = "turns.sais";
  how.overwrite = true;
  EXPECT_THAT(refusal(how), AllOf(HasSubstr("did you mean 'turns.says'"), HasSubstr("turns.who")));
}

TEST_F(Corpus, AFirstRowAtFaultIsSeenAtTheDoorWithWhatToDo) {
  const auto door = [&](const char* content) {
    folder_.write("a.json", content);
    return refusal(config({"a.json"}));
  };
  EXPECT_THAT(door("[{\"text\": \"a\"}]\n"),
              AllOf(HasSubstr("expected a JSON object, not an array"), HasSubstr("JSON lines"),
                    HasSubstr("jq -c '.[]'")));
  EXPECT_THAT(door("{\n  \"text\": \"a\"\n}"), HasSubstr("jq -c ."));
  EXPECT_THAT(door("{\"text\": null}\n"),
              AllOf(HasSubstr("line 1: 'text' is null"), HasSubstr("--column"),
                    HasSubstr("--on-bad-row skip")));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  CorpusConfig how = config({"a.json"});
  how.on_bad_row = "skip";
  EXPECT_THAT(failure(how), AllOf(HasSubstr("at least one document"), HasSubstr("'text' is null")));
}

TEST_F(Corpus, AByteOrderMarkIsNoPartOfJsonLines) {
  folder_.write("a.jsonl", "\xef\xbb\xbf" + line_of("one") +
                               line_of("\xef\xbb\xbf"
                                       "two"));
  EXPECT_EQ(prepared(config({"a.jsonl"})),
            "|one|\xef\xbb\xbf"
            "two");
}

TEST_F(Corpus, WhatIsPackedOtherwiseIsNamed) {
  using std::string_literals::operator""s;
  for (const auto& [name, head] : {std::pair{"xz",
                                             "\xfd"
                                             "7zXZ\0\0\4"s},
                                   {"bzip2", "BZh91AY&SY\x1c"s},
                                   {"zip", "PK\3\4\x14\0"s}})
    for (const char* file : {"a.jsonl.x", "a.jsonl", "a.txt"}) {
      folder_.write(file, head + std::string(100, '\x81'));
      EXPECT_THAT(refusal(config({file})),
                  AllOf(HasSubstr(file), HasSubstr(cat("got ", name)), HasSubstr("gzip or zstd")));
    }
  folder_.write("a.txt", "BZh is how such a file begins");
  EXPECT_EQ(prepared(config({"a.txt"})), "|BZh is how such a file begins");
}

TEST_F(Corpus, AFileWhoseNameSaysNothingIsLookedAt) {
  write_parquet(folder_ / "table", *table_of({"text"}));
  EXPECT_THAT(refusal(config({"table"})), HasSubstr("--type parquet"));
  write_arrow_file(folder_ / "arrow", *table_of({"text"}));
  EXPECT_THAT(refusal(config({"arrow"})), HasSubstr("--type arrow"));
  folder_.write("lines", line_of("text"));
  EXPECT_THAT(refusal(config({"lines"})), HasSubstr("--type jsonl"));
  CorpusConfig how = config({"lines"});
  how.type = "jsonl";
  EXPECT_EQ(prepared(how), "|text");
  folder_.write("wiki", "{{Infobox}}");
  EXPECT_EQ(prepared(config({"wiki"}, "of-wiki")), "|{{Infobox}}");
}

TEST_F(Corpus, AFolderIsReadOnceWhereItLinksToItsOwnFiles) {
  folder_.write("set/a.txt", "text");
  fs::create_symlink("a.txt", folder_ / "set/b.txt");
  EXPECT_EQ(prepared(config({"set"})), "|text");
  EXPECT_THAT(refusal(config({"set", "set/a.txt"}, "twice")), HasSubstr("named twice"));
}

TEST_F(Corpus, AFolderIsNotItsOwnResult) {
  folder_.write("out/a.txt", "text");
  EXPECT_THAT(refusal(config({"out"})),
              AllOf(HasSubstr("source and the --output"), HasSubstr("another folder")));
}

TEST_F(Corpus, WhatIsAskedForIsCheckedFirst) {
  folder_.write("a.jsonl", line_of("x"));
  folder_.write("empty/.hidden", "");
  const auto wrong = [&](auto change) {
    CorpusConfig how = config({"a.jsonl"});
    change(how);
    return refusal(how);
  };
  EXPECT_THAT(wrong([](auto& how) { how.type = "json"; }), HasSubstr("did you mean 'jsonl'"));
  EXPECT_THAT(wrong([](auto& how) { how.format = "llm.c"; }), HasSubstr("did you mean 'llmc'"));
  EXPECT_THAT(wrong([](auto& how) { how.tokenizer = "gtp2"; }), HasSubstr("did you mean 'gpt2'"));
  EXPECT_THAT(wrong([](auto& how) { how.on_bad_row = "ignore"; }), HasSubstr("fail, skip"));
  EXPECT_THAT(wrong([](auto& how) { how.validation_fraction = 2; }), HasSubstr("0 to 0.5"));
  EXPECT_THAT(wrong([](auto& how) { how.shard_tokens = 100; }), HasSubstr("10000 to"));
  EXPECT_THAT(wrong([](auto& how) { how.sources.push_back(how.sources[0]); }),
              HasSubstr("named twice"));
  EXPECT_THAT(wrong([](auto& how) { how.sources.push_back("-"); }), HasSubstr("only source"));
  EXPECT_THAT(wrong([](auto& how) { how.sources = {""}; }), HasSubstr("got ''"));
  EXPECT_THAT(wrong([&](auto& how) { how.sources = {(folder_ / "a.jsnl").string()}; }),
              AllOf(HasSubstr("no such file"), HasSubstr("a.jsonl'?")));
  EXPECT_THAT(wrong([&](auto& how) { how.sources = {(folder_ / "empty").string()}; }),
              HasSubstr("found none"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Corpus, Utf16IsCalledWhatItIs) {
  const std::string marked("\xff\xfeh\0i\0", 6), bare("h\0e\0l\0l\0", 8);
  const std::string json("{\0\"\0t\0\"\0", 8);
  for (const auto& [name, bytes] : {std::pair{"a.txt", marked},
                                    {"b.txt", bare},
                                    {"c.jsonl", marked},
                                    {"d.jsonl", json},
                                    {"e.txt", std::string("\xfe\xff\0h", 4)}}) {
    folder_.write(name, bytes);
    EXPECT_THAT(refusal(config({name})),
                AllOf(HasSubstr(name), HasSubstr("UTF-16"), HasSubstr("iconv -f UTF-16 -t UTF-8")));
  }
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  folder_.write("f.txt", "good");
  CorpusConfig how = config({"a.txt", "f.txt"});
  how.on_bad_row = "skip";
  EXPECT_EQ(prepared(how), "|good");
}

TEST_F(Corpus, AByteOrderMarkIsNoPartOfAText) {
  folder_.write("a.txt", "\xef\xbb\xbfmarked\n");
  folder_.write("b.txt", gzipped("\xef\xbb\xbfpacked"));
  folder_.write("c.jsonl", "\xef\xbb\xbf" + line_of("lines"));
  CorpusConfig how = config({"a.txt", "b.txt", "c.jsonl"});
  EXPECT_EQ(prepared(how), "|marked\n|packed|lines");
  const Json manifest = read_json_file(how.output / "manifest.json");
  EXPECT_EQ(manifest["train"]["bytes"], 7 + 6 + 5);
}

TEST_F(Corpus, ATableIsNoProse) {
  folder_.write("mixed/a.csv", "id,text\n1,\"x\"\n");
  folder_.write("mixed/b.txt", "prose");
  folder_.write("tables/a.tsv", "id\ttext\n");
  folder_.write("tables/b.csv.gz", gzipped("id,text\n"));
  for (const char* name : {"mixed/a.csv", "tables/b.csv.gz", "tables"})
    EXPECT_THAT(refusal(config({name})),
                AllOf(HasSubstr(name), HasSubstr("a table"), HasSubstr("--type text"),
                      HasSubstr("csv.DictReader")));
  const Json manifest = prepare_corpus(config({"mixed"}));
  EXPECT_EQ(text_of(manifest, "train"), "|prose");
  EXPECT_THAT(manifest["passed_over"].dump(), HasSubstr("a.csv"));
  CorpusConfig how = config({"mixed/a.csv"}, "forced");
  how.type = "text";
  EXPECT_EQ(prepared(how), "|id,text\n1,\"x\"\n");
}

TEST_F(Corpus, AFileThatGitLfsDidNotFetchIsNamed) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 99\n";
  for (const char* name : {"a.txt", "a.jsonl", "a.parquet", "a.arrow"}) {
    folder_.write(name, pointer);
    EXPECT_THAT(failure(config({name})), AllOf(HasSubstr(name), HasSubstr("git lfs pull")));
  }
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Corpus, NothingToReadIsAnError) {
  folder_.write("a.jsonl", line_of("") + "\n");
  EXPECT_THAT(failure(config({"a.jsonl"})), HasSubstr("expected at least one document"));
}

TEST_F(Corpus, NanoGptFilesAreTheTokensAlone) {
  folder_.write("a.jsonl", line_of("ab") + line_of("c"));
  CorpusConfig how = config({"a.jsonl"});
  how.format = "nanogpt";
  EXPECT_EQ(prepared(how), "|ab|c");
  EXPECT_EQ(read_file(how.output / "train.bin"), std::string("\0\1a\0b\0\0\1c\0", 10));
}

}  // namespace
}  // namespace xsa::data
