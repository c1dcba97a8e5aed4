#include "xsa/train/trainer.h"

#include <cstdio>

#include "xsa/base/progress.h"
#include "xsa/cli/command.h"
#include "xsa/study/evaluation.h"

namespace xsa::cli {

void train(const Arguments& arguments) {
  const study::Recipe recipe = resolve(arguments);
  if (arguments.dry_run) {
    std::printf("%s\n", train::to_json(recipe.run).dump(2).c_str());
    return;
  }
  // A comparison of the same recipe has the recipe's name alone.
  const std::filesystem::path folder = run_folder(arguments, "-" + recipe.run.model.attention);
  train::TrainOptions options = study::Measuring(recipe).options(folder);
  options.label = recipe.run.model.attention;
  options.resume = arguments.resume;
  options.overwrite = arguments.overwrite;
  const Json summary = train::train(recipe.run, folder, options);
  if (arguments.json) {
    std::printf("%s\n", summary.dump(2).c_str());
    return;
  }
  std::printf("validation loss %.4f   bits per byte %.4f   %s tokens/s   %s of tensors\nRun: %s\n",
              summary.at("validation_loss").get<double>(),
              summary.at("bits_per_byte").get<double>(),
              short_count(summary.at("tokens_per_s").get<double>()).c_str(),
              short_bytes(summary.at("peak_tensor_bytes").get<double>()).c_str(), folder.c_str());
}

}  // namespace xsa::cli
