#include "xsa/study/plan.h"

#include <cstdio>

#include "xsa/cli/command.h"

namespace xsa::cli {

const char* const kPlanExamples = R"(Examples:
  xsa plan paper-0.7b --gpus 8                 the paper's smallest model on eight H100s
  xsa plan paper-2.7b --gpus 64 --mfu 0.35 --train.batch_size=4 --train.accumulation=64
  xsa plan my.toml --peak-tflops 0.1 --json    on a device of another kind
  xsa plan paper-sweep-rates --gpus 8          each training of a sweep, and all together

Checks the recipe as training does and runs nothing. Devices share a step's passes (train.accumulation), each of
train.batch_size sequences. docs/plan.md says what is counted.
Any field of a recipe can be set as --table.field=value; xsa train --help-all lists them.)";

void add_plan_options(CommandLine& command, Arguments& arguments) {
  study::Devices& devices = arguments.devices;
  command.add_option("recipe", arguments.recipe, "a TOML file, or the name of one in recipes/")
      ->default_str("demo");
  command.add_option("--gpus", devices.count, "devices that train together")
      ->check(whole_number(1))
      ->default_str("1");
  CommandLine::Option* const gpu =
      command
          .add_option("--gpu", devices.gpu,
                      "a100, h100, h200 or b200: their peaks (TF32) and memory")
          ->default_str(devices.gpu);
  command
      .add_option("--peak-tflops", devices.peak_tflops,
                  "peak of another device, in 10^12 FLOPs a second")
      ->check(number())
      ->excludes(gpu);
  command.add_option("--mfu", devices.mfu, "share of the peak that training reaches")
      ->check(number())
      ->default_str("0.4");
}

void plan(const Arguments& arguments) {
  const auto print = [&](const auto& found) {
    if (arguments.json) {
      std::printf("%s\n", study::to_json(found).dump(2).c_str());
      return;
    }
    for (const std::string& line : study::lines(found)) std::printf("%s\n", line.c_str());
  };
  if (study::read_recipe_file(arguments.recipe).tables.contains("sweep"))
    print(study::plan(study::load_sweep(arguments.recipe, arguments.overrides, {}),
                      arguments.devices));
  else
    print(study::plan(resolve(arguments).run, arguments.devices));
}

}  // namespace xsa::cli
