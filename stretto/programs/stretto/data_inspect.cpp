#include <algorithm>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "stretto/base/enum_names.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/stretto/data.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/corpus.h"

namespace stretto::cli {
namespace {

using nlohmann::ordered_json;
using token_corpus::Corpus;
using token_corpus::Manifest;

struct DataInspectArguments {
  std::string corpus;
  int64_t samples = 0;
  bool check = false, json = false;
};

// Returns the beginning of a document.
struct DocumentSample {
  int64_t document, tokens;
  std::string text;
};

// Documents at equal distances.
std::vector<DocumentSample> samples_of(const Corpus& corpus, int64_t count) {
  constexpr int64_t most_tokens = 64;
  std::vector<DocumentSample> samples;
  count = std::min(count, corpus.documents());
  if (count == 0) return samples;
  const auto tokenizer = text::Tokenizer::load(corpus.tokenizer());
  corpus.require_tokenizer(tokenizer, corpus.tokenizer());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t document = i * corpus.documents() / count;
    const int64_t begin = corpus.document_begin(document), end = corpus.document_begin(document + 1);
    std::vector<int32_t> ids;
    corpus.read(begin, std::min(end, begin + most_tokens), ids);
    const bool cut = end - begin > most_tokens;
    samples.push_back(
        {document, end - begin, tokenizer.decode(ids, {.skip_special_tokens = false}) + (cut ? "..." : "")});
  }
  return samples;
}

int64_t bytes_of(const Manifest& manifest) {
  int64_t bytes = manifest.index.bytes;
  for (const token_corpus::CheckedFile& shard : manifest.shards) bytes += shard.bytes;
  return bytes;
}

double bytes_per_token(const Manifest& manifest) {
  return static_cast<double>(manifest.text_bytes) /
         static_cast<double>(std::max<int64_t>(1, manifest.tokens));
}

void print_json(const Corpus& corpus, const std::vector<DocumentSample>& samples, bool checked) {
  const Manifest& manifest = corpus.manifest();
  ordered_json json = {{"corpus", corpus.folder().string()},
                       {"documents", manifest.documents},
                       {"empty_documents", manifest.empty_documents},
                       {"tokens", manifest.tokens},
                       {"text_bytes", manifest.text_bytes},
                       {"bytes_per_token", bytes_per_token(manifest)},
                       {"dtype", manifest.token_bytes() == 2 ? "uint16" : "uint32"},
                       {"shards", manifest.shards.size()},
                       {"bytes", bytes_of(manifest)},
                       {"tokenizer",
                        {{"kind", manifest.tokenizer.kind},
                         {"vocab_size", manifest.tokenizer.vocab_size},
                         {"fingerprint", manifest.tokenizer.fingerprint}}},
                       {"fingerprint", corpus.fingerprint()},
                       {"checked", checked},
                       {"files", ordered_json::array()},
                       {"samples", ordered_json::array()}};
  for (const token_corpus::SourceFile& source : manifest.settings.sources)
    json["files"].push_back({{"path", source.path}, {"bytes", source.bytes}});
  for (const auto& [document, tokens, text] : samples)
    json["samples"].push_back({{"document", document}, {"tokens", tokens}, {"text", text}});
  std::cout << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

std::string size_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

void print_text(const Corpus& corpus, const std::vector<DocumentSample>& samples) {
  const Manifest& manifest = corpus.manifest();
  const auto& sources = manifest.settings.sources;
  int64_t source_bytes = 0;
  for (const token_corpus::SourceFile& source : sources) source_bytes += source.bytes;
  fmt::print("documents  {}", manifest.documents);
  if (manifest.empty_documents > 0) fmt::print(" ({} without text left out)", manifest.empty_documents);
  fmt::print("\ntokens     {} ({})\n", manifest.tokens, manifest.token_bytes() == 2 ? "uint16" : "uint32");
  fmt::print("text       {} ({:.3f} bytes per token)\n", size_text(manifest.text_bytes),
             bytes_per_token(manifest));
  fmt::print("files      {}, {}\n", counted(std::ssize(manifest.shards), "shard"),
             size_text(bytes_of(manifest)));
  fmt::print("tokenizer  {}\n", describe(manifest.tokenizer));
  fmt::print("from       {}, {}: {}\n", counted(std::ssize(sources), "file"), size_text(source_bytes),
             sources.front().path + (sources.size() > 1 ? ", ..." : ""));
  for (const auto& [document, tokens, text] : samples)
    fmt::print("\ndocument {} ({})\n{}\n", document, counted(tokens, "token"),
               escape_controls(text, ControlEscape::hexadecimal));
}

void run_data_inspect(const DataInspectArguments& arguments) {
  const Corpus corpus(expand_home(arguments.corpus));
  if (arguments.check) {
    ProgressBar bar("checking", bytes_of(corpus.manifest()), "bytes");
    corpus.check([&](int64_t bytes) { bar.add(bytes); });
  }
  const std::vector<DocumentSample> samples = samples_of(corpus, arguments.samples);
  if (arguments.json) return print_json(corpus, samples, arguments.check);
  print_text(corpus, samples);
  if (arguments.check) fmt::print("\nall checksums are right\n");
}

}  // namespace

void add_data_inspect(CLI::App& data, int& exit_code) {
  auto arguments = std::make_shared<DataInspectArguments>();
  CLI::App* verb =
      data.add_subcommand("inspect", "Show what a corpus holds: counts, its tokenizer, documents");
  verb->add_option("corpus", arguments->corpus, "The folder that `stretto data tokenize` wrote")
      ->required()
      ->type_name("FOLDER");
  verb->add_option("--samples", arguments->samples, "Also the beginnings of so many documents, decoded")
      ->check(arguments::whole_number_from(0, 1'000'000))
      ->type_name("N");
  verb->add_flag("--check", arguments->check, "Read all of it and compare its checksums");
  verb->add_flag("--json", arguments->json, "Print a JSON object");
  verb->callback([arguments, &exit_code] {
    run_data_inspect(*arguments);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
