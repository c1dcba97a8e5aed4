#include "xsa/study/same_text.h"

#include "xsa/base/error.h"

namespace xsa::study {

void check_same_text(const std::filesystem::path& folder, const std::string& source,
                     const std::vector<TrainedText>& texts) {
  for (const TrainedText& text : texts)
    check(text.sha256 == texts.front().sha256, folder.string(), ": ", text.run,
          " was trained on another text than ", texts.front().run, ": '", source,
          "' changed in between; --overwrite trains all anew");
}

}  // namespace xsa::study
