#include <atomic>
#include <csignal>
#include <memory>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/columnar/saved_files.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/stretto/data.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/tokenize.h"

namespace stretto::cli {
namespace {

using token_corpus::DocumentRule;

struct DataTokenizeArguments {
  std::vector<std::string> files;
  std::string tokenizer, output;
  std::string document = std::string(name_of(DocumentRule::file));
  bool no_special = false, no_eos = false;
  int64_t save_every = 256;  // MiB
  token_corpus::TokenizeOptions options;
};

// The signal that asked to stop; 0: none. A second signal ends the process at once; saved progress is kept.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void stop_on_signals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = [](int number) { stop_signal = number; };
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

// Adds a file, or those of a saved data set.
void add_files(const std::filesystem::path& path, std::vector<std::filesystem::path>& files) {
  if (!std::filesystem::exists(path))
    throw ConfigError("{}: there is no such file; expected a file of text, or one that save_to_disk wrote",
                      path.string());
  if (!std::filesystem::is_directory(path)) return files.push_back(path);
  const auto saved = columnar::saved_files(path);
  if (saved.empty())
    throw ConfigError(
        "{}: a folder without a state.json, so not that of a data set that save_to_disk wrote; expected files of text",
        path.string());
  files.insert(files.end(), saved.begin(), saved.end());
}

int run_data_tokenize(const DataTokenizeArguments& arguments) {
  token_corpus::TokenizeOptions options = arguments.options;
  options.documents.rule = parse_enum<DocumentRule>(arguments.document);
  if (options.documents.keep_newlines && options.documents.rule != DocumentRule::line)
    throw ConfigError(
        "--keep-newlines applies to --document line; other documents keep the line ends inside of them");
  if (arguments.no_eos && options.eos_token)
    throw ConfigError("--eos and --no-eos exclude each other; choose one");
  options.special_tokens = !arguments.no_special;
  options.eos = !arguments.no_eos;
  options.save_every = arguments.save_every << 20;
  options.stop = [] { return stop_signal != 0; };
  options.names = {{"column", "--column"},
                   {"eos", "--no-eos"},
                   {"eos_token", "--eos"},
                   {"output", "--output"},
                   {"overwrite", "--overwrite"}};
  std::vector<std::filesystem::path> files;
  for (const std::string& file : arguments.files) add_files(expand_home(file), files);
  const std::filesystem::path tokenizer = expand_home(arguments.tokenizer);
  const auto loaded = text::Tokenizer::load(tokenizer);
  ignore_write_signals();
  stop_on_signals();
  if (token_corpus::tokenize(files, loaded, tokenizer, expand_home(arguments.output), options)) return 0;
  log::info("stopped; the same command continues from here");
  return 128 + stop_signal;
}

void add_document_options(CLI::App& verb, DataTokenizeArguments& arguments) {
  verb.add_option(
          "--document", arguments.document,
          "What a document of plain text is: the whole file, each line, or what blank lines separate (default: file)")
      ->check(CLI::IsMember(enum_names<DocumentRule>()))
      ->type_name("RULE");
  verb.add_flag("--keep-newlines", arguments.options.documents.keep_newlines,
                "With --document line: the line end belongs to its document, as in Hugging Face's run_clm");
  verb.add_option("--column", arguments.options.documents.column,
                  "JSON Lines, Parquet and Arrow: the key or column of the text (default: text)")
      ->type_name("KEY");
  verb.add_option("--eos", arguments.options.eos_token,
                  "The token that ends each document (default: the tokenizer's eos_token)")
      ->type_name("TOKEN");
  verb.add_flag("--no-eos", arguments.no_eos, "Documents have no token at their end");
  verb.add_flag("--no-special", arguments.no_special,
                "Documents do not get what the tokenizer adds to a text, such as <s> in front");
}

}  // namespace

void add_data_tokenize(CLI::App& data, int& exit_code) {
  auto arguments = std::make_shared<DataTokenizeArguments>();
  CLI::App* verb = data.add_subcommand("tokenize", "Write the tokens of text files as a corpus");
  verb->footer(
      "Reads plain text and JSON Lines (.jsonl, .json, .ndjson), also compressed with gzip or Zstandard, and, if stretto was built with "
      "Arrow C++, Parquet, Arrow files and folders of datasets' save_to_disk. Interrupted, by Ctrl-C or "
      "a full disk, the same command continues; the result is the same.");
  verb->add_option("files", arguments->files, "Files; their documents follow one another in this order")
      ->required()
      ->type_name("FILE");
  verb->add_option("--tokenizer", arguments->tokenizer,
                   "A folder with a tokenizer's files, or one of these files")
      ->required()
      ->type_name("PATH");
  verb->add_option("-o,--output", arguments->output, "The folder of the corpus")
      ->required()
      ->type_name("FOLDER");
  add_document_options(*verb, *arguments);
  verb->add_option("-j,--threads", arguments->options.threads, "Threads (default: one per processor)")
      ->check(arguments::whole_number_from(0, 1024))
      ->type_name("N");
  verb->add_option("--shard-tokens", arguments->options.tokens_per_shard,
                   "Tokens per file of the corpus (default: 268435456)")
      ->check(arguments::whole_number_from(1, int64_t{1} << 40))
      ->type_name("N");
  verb->add_option("--save-every", arguments->save_every,
                   "MiB of text between two points from which an interrupted run continues (default: 256)")
      ->check(arguments::whole_number_from(1, 1 << 20))
      ->type_name("N");
  verb->add_flag("--overwrite", arguments->options.overwrite, "Replace the corpus in the folder");
  verb->callback([arguments, &exit_code] { exit_code = run_data_tokenize(*arguments); });
}

}  // namespace stretto::cli
