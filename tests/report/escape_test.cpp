#include "xsa/report/escape.h"

#include <gmock/gmock.h>

namespace xsa::report {
namespace {

TEST(EscapeHtml, LeavesNoMarkup) {
  EXPECT_EQ(escape_html("<a b=\"c\" d='e'>&amp;é"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;é");
}

TEST(ScriptJson, StaysTheSameJsonButCannotEndItsScript) {
  const Json json = {{"</script>", "<!-- <script> -->"}, {"plain", 1.5}};
  const std::string text = script_json(json);
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("<")));
  EXPECT_EQ(Json::parse(text), json);
}

TEST(ScriptJson, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(script_json("caf\xe9"), "\"caf\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace xsa::report
