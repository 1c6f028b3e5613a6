#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/corpus/tagged.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

struct ExportArguments {
  std::string train, validation, test, output, token, tag, scheme, encoding = "utf-8";
  std::vector<std::string> tag_names;
  bool overwrite = false;
};

// JSON Lines for Hugging Face's run_ner, with the spans of the tags for other programs.
std::string json_lines(const corpus::TaggedCorpus& corpus) {
  std::string lines;
  for (size_t i = 0; i < corpus.sentences.size(); ++i) {
    const corpus::TaggedSentence& sentence = corpus.sentences[i];
    nlohmann::ordered_json record = {{"id", std::to_string(i)}, {"tokens", sentence.tokens}};
    if (corpus.has_tags) {
      record["ner_tags"] = sentence.tags;
      record["spans"] = nlohmann::ordered_json::array();
      for (const corpus::Span& span : corpus::lenient_spans(sentence.tags))
        record["spans"].push_back({{"type", span.type}, {"begin", span.begin}, {"end", span.end}});
    }
    lines += record.dump() + "\n";
  }
  return lines;
}

void run_export(const ExportArguments& arguments) {
  corpus::TaggedOptions options;
  options.token = arguments.token;
  options.tag = arguments.tag;
  options.tag_names = arguments.tag_names;
  options.names = {{"token", "--text"},
                   {"tag", "--label"},
                   {"tag_names", "--tag-names"},
                   {"encoding", "--encoding"},
                   {"scheme", "--scheme"}};
  options.encoding = corpus::parse_encoding(arguments.encoding, options.names);
  if (!arguments.scheme.empty()) options.scheme = corpus::parse_tag_scheme(arguments.scheme, options.names);
  const std::pair<const char*, const std::string&> parts[] = {
      {"train", arguments.train}, {"validation", arguments.validation}, {"test", arguments.test}};
  const std::filesystem::path folder = arguments.output;
  // All files are read before any is written, so that an error leaves no partial output.
  std::vector<std::pair<std::filesystem::path, std::string>> files;
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  for (const auto& [part, source] : parts) {
    if (source.empty()) continue;
    options.require_tags = std::string_view(part) != "test";
    const corpus::TaggedCorpus corpus = corpus::read_tagged(source, options);
    files.emplace_back(folder / (std::string(part) + ".json"), json_lines(corpus));
    if (std::filesystem::exists(files.back().first) && !arguments.overwrite)
      throw ConfigError("{}: it already exists; pass --overwrite, or another --output",
                        files.back().first.string());
    counts[part] = {{"file", files.back().first.string()},
                    {"sentences", corpus.sentences.size()},
                    {"tokens", corpus.tokens()},
                    {"spans", corpus.has_tags ? corpus.spans() : 0}};
  }
  if (files.empty())
    throw ConfigError("export-corpus: there is nothing to export; pass --train, --validation or --test");
  make_folders(folder);
  for (const auto& [path, lines] : files) write_file_atomic(path, lines);
  std::cout << counts.dump(2) << "\n";
  arguments::flush_standard_output();
}

}  // namespace

void add_export_corpus(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "export-corpus", "Write tagged sentences as the JSON Lines that Hugging Face's run_ner reads");
  auto arguments = std::make_shared<ExportArguments>();
  verb->footer(
      "Reads CoNLL files (any extension) and JSON Lines (.jsonl, .json). Writes train.json, validation.json and test.json, each "
      "line with id, tokens, ner_tags and spans, and prints a summary.");
  verb->add_option("--train", arguments->train, "Training sentences")->type_name("FILE");
  verb->add_option("--validation,--dev", arguments->validation, "Validation sentences")->type_name("FILE");
  verb->add_option("--test", arguments->test, "Test sentences, with or without tags")->type_name("FILE");
  verb->add_option("-o,--output", arguments->output, "Folder to write to")->type_name("FOLDER")->required();
  verb->add_option("--tag-scheme", arguments->scheme, "Convert the tags: IOB1, IOB2 or IOBES")
      ->type_name("NAME");
  verb->add_option("--text", arguments->token, "Number of the token column, or key of the tokens")
      ->type_name("COLUMN");
  verb->add_option("--label", arguments->tag, "Number of the tag column, or key of the tags")
      ->type_name("COLUMN");
  verb->add_option("--tag-names", arguments->tag_names, "Names of tags that are numbers")->delimiter(',');
  verb->add_option("--encoding", arguments->encoding, "utf-8, utf-8-replace or latin-1")->type_name("NAME");
  verb->add_flag("--overwrite", arguments->overwrite, "Replace files that exist");
  verb->callback([arguments] { run_export(*arguments); });
}

}  // namespace stretto::cli
