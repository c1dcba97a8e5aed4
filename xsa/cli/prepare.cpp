#include <cstdio>
#include <memory>

#include "xsa/base/progress.h"
#include "xsa/base/system.h"
#include "xsa/cli/command.h"
#include "xsa/data/corpus.h"
#include "xsa/text/tokenizer.h"

namespace xsa::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void print_split(const char* name, const Json& split) {
  const auto number = [&](const char* key) { return split.at(key).get<double>(); };
  std::printf("%-11s %s documents, %s of text, %s tokens in %zu files\n", name,
              short_count(number("documents")).c_str(), short_bytes(number("bytes")).c_str(),
              short_count(number("tokens")).c_str(), split.at("shards").size());
}

/// What was left out is never left unsaid.
void print_left_out(const Json& manifest) {
  const Json& counts = manifest.at("counts");
  std::string text;
  const auto add = [&](const Json& count, const std::string& what) {
    if (count != 0) text += (text.empty() ? "" : ", ") + count.dump() + " " + what;
  };
  add(counts.at("empty_documents"), "empty");
  for (const auto& [fault, count] : counts.at("bad_rows").items()) add(count, fault);
  if (!text.empty()) std::printf("left out    %s (manifest.json names some)\n", text.c_str());
  const Json& passed_over = manifest.at("passed_over");
  if (!passed_over.empty())
    std::printf("not read    %zu files of another kind: %s%s\n", passed_over.size(),
                passed_over[0].get<std::string>().c_str(), passed_over.size() > 1 ? ", ..." : "");
}

void print(const data::CorpusConfig& config, const Json& manifest) {
  print_split("train", manifest.at("train"));
  print_split("validation", manifest.at("validation"));
  print_left_out(manifest);
  std::printf("held out    %s\n", manifest.at("held_out").get<std::string>().c_str());
  if (config.validation_fraction > 0)
    for (const char* split : {"train", "validation"})
      if (manifest.at(split).at("documents") == 0)
        std::printf("note        nothing is left for %s; use more text\n", split);
  std::printf("%s: %s tokenizer, peak memory %s\n", config.output.c_str(),
              manifest.at("tokenizer").get<std::string>().c_str(),
              short_bytes(static_cast<double>(peak_rss_bytes())).c_str());
}

}  // namespace

constexpr char kPrepareExamples[] = R"(Examples:
  xsa prepare book.txt --output data/book              one text: its end is held out
  xsa prepare corpus/ --output data/corpus             a folder: each text file is a document
  xsa prepare 'fineweb/*.parquet' --output data/fineweb
  xsa prepare pile.jsonl.zst --column text --validation-fraction 0.001 --output data/pile
  xsa prepare hf-dataset/ --type arrow --column content --on-bad-row skip --output data/code
  zstdcat big.zst | xsa prepare - --type jsonl --output data/big
  xsa prepare owt/ --format nanogpt --output data/openwebtext      train.bin, val.bin for nanoGPT
  xsa train --data.source data/fineweb --data.tokenizer gpt2       train on the result

Sources
  Text files, .jsonl (.ndjson, .json), .parquet, .arrow (Arrow IPC files and streams). Text and JSON lines may be packed by
  gzip or zstd; their first bytes tell. A folder is read with its subfolders; of several kinds in it one is taken: parquet,
  else arrow, else JSON lines, else text, and the others are listed as not read. Quote a glob to have xsa expand it.
  FineWeb's sample of 10 billion tokens is 15 parquet files, 30 GB, in the data set HuggingFaceFW/fineweb, folder
  sample/10BT:  hf download HuggingFaceFW/fineweb --repo-type dataset --include 'sample/10BT/*' --local-dir fineweb

Result
  An end-of-text token before every document; uint16 tokens in llm.c's shards (or nanoGPT's raw files); manifest.json with
  sources, sizes, hashes and counts. The order is that of the sorted paths, then of the rows; it does not depend on threads.
  A document is held out for validation by the hash of its text, so copies of it fall to the same side. Where none would be,
  the nearest one is; a document alone is cut.

Interrupted (Ctrl-C, kill, power), the same command continues, to the same bytes. Another command, or sources that changed,
are refused; --overwrite begins anew. Memory stays at a few hundred MB; docs/data.md says what bounds it.)";

std::function<void()> declare_prepare(CommandLine& command) {
  command.footer(kPrepareExamples);
  auto config = std::make_shared<data::CorpusConfig>();
  auto json = std::make_shared<bool>(false);
  command.add_option("source", config->sources, "files, folders, globs, or - for standard input")
      ->required();
  command.add_option("-o,--output", config->output, "folder for the tokens")->required();
  const auto option = [&](const char* name, auto& value, const std::string& about) {
    command.add_option(name, value, about);
  };
  option("--tokenizer", config->tokenizer,
         joined(text::tokenizer_names()) + ", or a folder with a vocabulary");
  option("--column", config->column,
         "the field or column that holds the text of a record; a.b: a field within another");
  option("--type", config->type,
         "kind of the sources: " + joined(data::corpus_types()) + "; auto: by their names");
  option("--format", config->format, "of the token files: " + joined(data::corpus_formats()));
  option("--validation-fraction", config->validation_fraction,
         "share of the documents that is held out, by hash of their text; 0: none");
  option("--on-bad-row", config->on_bad_row,
         "a row without text, broken or not UTF-8: fail, or skip and count it");
  option("--shard-tokens", config->shard_tokens, "tokens in a shard (llmc), 10000 or more");
  option("--max-row-mib", config->max_row_mib, "a longer line of JSON is a bad row");
  option("--threads", config->threads,
         "that encode; 0: one for each core that the process may use");
  option("--save-mib", config->save_mib, "text between two places where a broken run may continue");
  command.add_flag("--overwrite", config->overwrite, "remove what an earlier run made, begin anew");
  command.add_flag("--json", *json, "print the manifest to standard output");
  return [config, json] {
    const Json manifest = data::prepare_corpus(*config);
    if (*json)
      std::printf("%s\n", manifest.dump(2).c_str());
    else
      print(*config, manifest);
  };
}

}  // namespace xsa::cli
