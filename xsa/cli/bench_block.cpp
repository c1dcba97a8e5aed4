#include <cstdio>
#include <memory>
#include <optional>

#include "xsa/base/progress.h"
#include "xsa/bench/block.h"
#include "xsa/cli/command.h"
#include "xsa/cli/output_file.h"

namespace xsa::cli {
namespace {

struct BlockOptions {
  std::string what;
  bench::BlockConfig block;
  std::string output;
  bool json = false, overwrite = false;
};

void run(const BlockOptions& options) {
  if (!options.output.empty()) {
    const auto is_ours = [](std::string_view text) {
      return is_object_with(text, {"what", "head_dim", "threads", "results"});
    };
    check_output_file(options.output, {"--output", {}, is_ours, options.overwrite});
  }
  bench::BlockProgress shown;
  std::optional<Progress> bar;
  shown.update = [&](std::int64_t done, std::int64_t total, const std::string& what) {
    if (!bar) bar.emplace("block", total, "round");
    bar->update(done, what);
  };
  const Json result = bench::measure_block(options.block, shown);
  if (bar) bar->finish();
  if (!options.output.empty()) write_json_file(options.output, result);
  std::printf("%s\n", options.json ? result.dump(2).c_str() : bench::block_table(result).c_str());
}

}  // namespace

constexpr char kBenchExamples[] = R"(Examples:
  xsa bench block                                             lengths 512, 1024 and 2048
  xsa bench block --lengths 256,4096 --batch 2 --rounds 31 --output block.json
  xsa bench block --dtype bfloat16 --width 1536 --heads 12 --head-dim 128

Fig. 2 of the paper: one block, attention and feed-forward layer with their norms, with XSA and without, forward and
forward with backward. The two take turns in one process; the ratio is of pairs, and the memory is counted exactly.)";

std::function<void()> declare_bench(CommandLine& command) {
  command.footer(kBenchExamples);
  const auto options = std::make_shared<BlockOptions>();
  bench::BlockConfig& block = options->block;
  command.add_option("what", options->what, "what is measured: block")
      ->required()
      ->check(one_of_words({"block"}));
  command.add_option("--lengths", block.lengths, "tokens of a sequence, with commas between")
      ->delimiter(',')
      ->check(whole_number(2))
      ->default_str("512,1024,2048");
  const auto number = [&](const char* name, std::int64_t& value, const char* help) {
    command.add_option(name, value, help)->check(whole_number(1));
  };
  number("--batch", block.batch, "sequences at once");
  command.add_option("--dtype", block.type, "float32 or bfloat16: of weights and activations");
  number("--width", block.width,
         "width of the residual stream; the feed-forward layer's is 4 times");
  number("--heads", block.heads, "heads");
  number("--head-dim", block.head_dim, "dimension of a head");
  number("--rounds", block.rounds, "measurements of each length, forward and backward");
  command
      .add_option("--threads", block.threads, "default: one for each core that the process may use")
      ->check(whole_number(1));
  command.add_option("--output", options->output, "also write the result to this JSON file");
  command.add_flag("--overwrite", options->overwrite,
                   "replace an --output that is no result of this");
  command.add_flag("--json", options->json, "print the result as JSON in place of the table");
  return [options] { run(*options); };
}

}  // namespace xsa::cli
