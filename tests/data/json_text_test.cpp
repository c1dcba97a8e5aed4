#include "xsa/data/json_text.h"

#include <gmock/gmock.h>

#include "xsa/base/json.h"
#include "xsa/base/rng.h"

namespace xsa::data {
namespace {

using ::testing::HasSubstr;

/// The text, or the fault's name and the reason.
std::string read(std::string_view line, const std::string& column = "text") {
  JsonText json(column);
  Row row;
  json.read(line, row);
  if (row.fault == Fault::kNone) return std::string(row.text);
  return std::string(kFaultNames[static_cast<std::size_t>(row.fault)]) + ": " + row.reason;
}

TEST(JsonText, FindsTheFieldAmongOthers) {
  EXPECT_EQ(read(R"({"text":"a"})"), "a");
  EXPECT_EQ(read(R"( { "id" : -1.5e+3 , "x":[1,{"text":"no"},[]], "text" : "yes" , "y":null } )"),
            "yes");
  EXPECT_EQ(read(R"({"text": ""})"), "");
  EXPECT_EQ(read(R"({"te\u0078t": "escaped key"})"), "escaped key");
  EXPECT_EQ(read(R"({"text": "first", "text": "last"})"), "last");
}

TEST(JsonText, ReadsOnWhereAnotherFieldHoldsWhatPythonWritesForNoNumber) {
  for (const char* value : {"NaN", "Infinity", "-Infinity", "[1, NaN, {\"a\": -Infinity}]"})
    EXPECT_EQ(read("{\"score\": " + std::string(value) + ", \"text\": \"a\"}"), "a") << value;
  EXPECT_THAT(read("{\"text\": NaN}"), HasSubstr("wrong_type: 'text': expected a string"));
}

TEST(JsonText, FollowsAPathThroughObjectsAndLists) {
  const auto at = [](const char* column, std::string_view line) { return read(line, column); };
  EXPECT_EQ(at("a.b", R"({"a": {"x": 1, "b": "yes"}, "b": "no"})"), "yes");
  EXPECT_EQ(at("a.b", R"({"a.b": "a key with a point"})"), "a key with a point");
  EXPECT_EQ(at("a", R"({"a": ["one", null, "two\n", []]})"), "one\ntwo\n");
  EXPECT_EQ(at("a", R"({"a": []})"), "");
  EXPECT_EQ(at("a.b", R"({"a": [{"b": "one"}, {}, {"b": ["two", "three"]}]})"), "one\ntwo\nthree");
  EXPECT_EQ(at("a.b", R"({"a": [{"b": "no"}], "a": [{"b": "yes"}]})"), "yes");
  EXPECT_EQ(at("a.b", R"({"a": [{"b": 5}], "a": {"b": "yes"}})"), "yes");
  EXPECT_THAT(at("a.b", R"({"a": {"c": "x"}})"), HasSubstr("no_text: no column 'a.b'"));
  EXPECT_THAT(at("a.b", R"({"a": null})"), HasSubstr("no_text: no column 'a.b'"));
  EXPECT_THAT(at("a.b", R"({"a": {"b": null}})"), HasSubstr("no_text: 'a.b' is null"));
  EXPECT_THAT(at("a.b", R"({"a": {"b": {"c": "x"}}})"), HasSubstr("got an object"));
  EXPECT_THAT(at("a.b", R"({"a": [{"b": "x"})"), HasSubstr("broken"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[";
  EXPECT_THAT(at("a", "{\"a\": " + deep), HasSubstr("broken: expected less nesting"));
  EXPECT_THAT(at("a.b", "{\"a\": " + deep), HasSubstr("broken: expected less nesting"));
}

TEST(JsonText, UnescapesEverything) {
  EXPECT_EQ(read(R"({"text":"\"\\\/\b\f\n\r\t"})"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(read(R"({"text":"\u0041\u00e9\u20AC\ud83d\ude00\u0000end"})"),
            std::string("A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\0end", 14));
}

TEST(JsonText, TellsWhyThereIsNoText) {
  EXPECT_THAT(read(R"({"txt": "a", "id": 1})"),
              HasSubstr("no_text: no column 'text' (did you mean 'txt'?); columns of text: txt ("));
  EXPECT_EQ(read(R"({"text": null})"), "no_text: 'text' is null");
  EXPECT_THAT(read(R"({"text": 5})"),
              HasSubstr("wrong_type: 'text': expected a string, got a number"));
  EXPECT_THAT(read(R"({"text": ["a", 5]})"),
              HasSubstr("wrong_type: 'text': expected strings in its list, got a number"));
  EXPECT_THAT(read(R"({"text": "\ud83d"})"), HasSubstr("invalid_utf8: half a surrogate pair"));
}

TEST(JsonText, RefusesWhatIsNoJsonWhereverItBreaks) {
  for (const char* line : {"",
                           " ",
                           "{",
                           "[]",
                           "5",
                           "{}x",
                           "{\"text\"}",
                           "{\"text\":}",
                           "{\"text\":\"a\",}",
                           "{\"text\":\"a\" \"b\":1}",
                           "{\"text\":\"a\"",
                           "{\"text\":\"a",
                           "{\"text\":\"\\x\"}",
                           "{\"text\":\"\\u12g4\"}",
                           "{\"text\":\"a\tb\"}",
                           "{\"text\":\"a\",\"n\":01}",
                           "{\"text\":\"a\",\"n\":-}",
                           "{\"text\":\"a\",\"n\":1.}",
                           "{\"text\":\"a\",\"n\":1e}",
                           "{\"text\":\"a\",\"n\":Nan}",
                           "{\"text\":\"a\",\"n\":+Infinity}",
                           "{\"text\":\"a\",\"n\":-NaN}",
                           "{\"text\":\"a\",\"n\":tru}",
                           "{\"text\":\"a\",\"n\":[1,]}",
                           "{\"text\":\"a\",\"n\":{\"m\":1,}}",
                           "{text:\"a\"}",
                           "{'text':'a'}"}) {
    const std::string got = read(line);
    if (std::string_view(line) == "{}x")
      EXPECT_THAT(got, HasSubstr("broken: expected the end of the line at byte 2"));
    else
      EXPECT_THAT(got, HasSubstr("broken: expected ")) << line;
  }
  const std::string deep(100'000, '[');
  EXPECT_THAT(read("{\"n\":" + deep + "}"), HasSubstr("broken: expected less nesting"));
}

TEST(JsonText, AgreesWithTheJsonLibraryOnDamagedLines) {
  const std::string line =
      R"({"id": -12.5e3, "tags": ["a", {"b": [true, false, null]}], "text": "x\n\u00e9 y", "n": 0})";
  Rng rng(11);
  const std::string alphabet = "{}[]\",:\\ntu0e.-x 5";
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = line;
    for (std::size_t edits = 1 + rng.below(2); edits > 0; --edits)
      damaged[rng.below(damaged.size())] = alphabet[rng.below(alphabet.size())];
    const Json parsed = Json::parse(damaged, nullptr, /*allow_exceptions=*/false);
    const std::string got = read(damaged);
    if (parsed.is_discarded() || !parsed.is_object()) {
      ASSERT_THAT(got, ::testing::AnyOf(HasSubstr("broken"), HasSubstr("invalid_utf8"))) << damaged;
    } else if (parsed.contains("text") && parsed["text"].is_string()) {
      ASSERT_EQ(got, parsed["text"].get<std::string>()) << damaged;
      ++accepted;
    } else {
      ASSERT_THAT(got, ::testing::AnyOf(HasSubstr("no_text"), HasSubstr("wrong_type"))) << damaged;
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace xsa::data
