#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/line_reader.h"
#include "stretto/base/log.h"
#include "stretto/base/parallel.h"
#include "stretto/base/strings.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/stretto/tokenize_output.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/text/tokenizer.h"

namespace stretto::cli {
namespace {

struct TokenizeArguments {
  std::string tokenizer;
  std::string file = "-";  // standard input
  TokenizeOutput output = TokenizeOutput::ids;
  bool no_special = false;
  bool pair = false;
  bool split_into_words = false;
  std::optional<size_t> max_length;
  std::string truncation;  // empty: longest_first
  std::optional<size_t> stride;
  std::string truncation_side;  // empty: the tokenizer's
  text::TokenizerOptions options;
  int threads = 1;
};

const std::map<std::string, text::Truncation>& truncations() {
  static const std::map<std::string, text::Truncation> all = {
      {"longest_first", text::Truncation::longest_first},
      {"only_first", text::Truncation::only_first},
      {"only_second", text::Truncation::only_second},
      {"do_not_truncate", text::Truncation::do_not_truncate}};
  return all;
}

// Writes all of `bytes` to standard output; false if the reader has closed it.
bool write_output(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) return false;
    if (written < 0) throw IoError("standard output: cannot write: {}", std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void check_arguments(const TokenizeArguments& arguments) {
  if (arguments.truncation == "only_second" && !arguments.pair)
    throw ConfigError("--truncation only_second cuts the second text of a pair; it needs --pair");
  if (arguments.output != TokenizeOutput::text) return;
  const char* unused = arguments.pair               ? "--pair"
                       : arguments.split_into_words ? "--split-into-words"
                       : arguments.max_length       ? "--max-length"
                                                    : nullptr;
  if (unused != nullptr) throw ConfigError("{} does not apply to ids, which --decode reads", unused);
}

text::EncodeOptions encode_options(const TokenizeArguments& arguments) {
  text::EncodeOptions options{.special_tokens = !arguments.no_special,
                              .max_length = arguments.max_length,
                              .stride = arguments.stride.value_or(0)};
  if (!arguments.truncation.empty()) options.truncation = truncations().at(arguments.truncation);
  if (!arguments.truncation_side.empty())
    options.truncation_side = arguments.truncation_side == "left" ? text::Side::left : text::Side::right;
  return options;
}

// The text of a line: whole, or split into words.
struct LineInput {
  LineInput(std::string_view line, bool split_into_words) : text(line), split(split_into_words) {
    if (!split) return;
    for (const std::string_view word : split_words(line)) words.emplace_back(word);
  }
  text::Input input() const { return split ? text::Input(words) : text::Input(text); }

  std::string_view text;
  std::vector<std::string> words;
  bool split;
};

std::vector<text::Encoding> one(text::Encoding encoding) {
  std::vector<text::Encoding> all;
  all.push_back(std::move(encoding));
  return all;
}

// Encodes all windows of a line with --stride, otherwise the first one.
std::vector<text::Encoding> encode_line(const text::Tokenizer& tokenizer, std::string_view line,
                                        const TokenizeArguments& arguments,
                                        const text::EncodeOptions& options) {
  const size_t tab = arguments.pair ? line.find('\t') : line.size();
  if (tab == std::string_view::npos)
    throw DataError("found one text; expected two, separated by a tab, because of --pair");
  const LineInput first(line.substr(0, tab), arguments.split_into_words);
  if (!arguments.pair) {
    if (arguments.stride) return tokenizer.encode_windows(first.input(), options);
    return one(tokenizer.encode(first.input(), options));
  }
  const LineInput second(line.substr(tab + 1), arguments.split_into_words);
  if (arguments.stride) return tokenizer.encode_pair_windows(first.input(), second.input(), options);
  return one(tokenizer.encode_pair(first.input(), second.input(), options));
}

// Logs the lengths in the file, which are not applied: as in transformers, the caller sets lengths.
void report_saved_lengths(const text::SavedLengths& saved, const TokenizeArguments& arguments) {
  if (arguments.max_length || arguments.output == TokenizeOutput::text) return;
  if (saved.truncation) {
    const auto is_strategy = [&](const auto& item) { return item.second == saved.truncation->truncation; };
    log::info(
        "tokenizer.json: truncation to {} tokens is not applied, as in transformers; --max-length {} --truncation {} applies it",
        *saved.truncation->max_length, *saved.truncation->max_length,
        std::ranges::find_if(truncations(), is_strategy)->first);
  }
  if (saved.padding)
    log::info("tokenizer.json: padding to {} tokens is not applied, as in transformers", *saved.padding);
}

void run_tokenize(const TokenizeArguments& arguments) {
  check_arguments(arguments);
  LineReader input(arguments.file);
  const auto tokenizer = text::Tokenizer::load(expand_home(arguments.tokenizer), arguments.options);
  report_saved_lengths(tokenizer.saved_lengths(), arguments);
  const text::EncodeOptions options = encode_options(arguments);
  // Writes the output of all complete lines before the next read, so that another program can use this one
  // interactively through two pipes.
  for (auto lines = input.next_lines(); !lines.empty(); lines = input.next_lines()) {
    std::vector<std::string> out(lines.size());
    std::vector<std::exception_ptr> failures(lines.size());
    const auto place = [&](size_t i) {
      return fmt::format("{}:{}", input.name(), input.line_number() + static_cast<int64_t>(i));
    };
    const auto run_line = [&](size_t i) {
      if (arguments.output == TokenizeOutput::text)
        return append_text(tokenizer, lines[i], arguments.no_special, place(i), out[i]);
      try {
        append_encodings(tokenizer, encode_line(tokenizer, lines[i], arguments, options), arguments.output,
                         arguments.stride.has_value(), out[i]);
      } catch (const DataError& error) {
        throw DataError("{}: {}", place(i), error.what());
      }
    };
    run_in_parts(lines.size(), arguments.threads, [&](size_t first, size_t last) {
      for (size_t i = first; i < last && !failures[i]; ++i) {
        try {
          run_line(i);
        } catch (const Error&) {
          failures[i] = std::current_exception();
          return;
        }
      }
    });
    // Lines before the first failing one are written.
    std::string all;
    const auto failed =
        std::ranges::find_if(failures, [](const auto& failure) { return failure != nullptr; });
    for (auto line = out.begin(); line != out.begin() + (failed - failures.begin()); ++line) all += *line;
    if (!write_output(all)) return;
    if (failed != failures.end()) std::rethrow_exception(*failed);
  }
}

void add_truncation_options(CLI::App& verb, TokenizeArguments& arguments) {
  auto* max_length = verb.add_option("--max-length", arguments.max_length,
                                     "Truncate to this many tokens, special tokens included")
                         ->check(arguments::whole_number_from(0, 1'000'000'000))
                         ->type_name("N");
  verb.add_option("--truncation", arguments.truncation,
                  "With --max-length: which text of a pair is truncated (default: longest_first)")
      ->check(CLI::IsMember({"longest_first", "only_first", "only_second", "do_not_truncate"}))
      ->type_name("NAME")
      ->needs(max_length);
  verb.add_option(
          "--stride", arguments.stride,
          "With --max-length: print the rest as further windows, which overlap by this many tokens; a tab "
          "separates them")
      ->check(arguments::whole_number_from(0, 1'000'000'000))
      ->type_name("N")
      ->needs(max_length);
  verb.add_option("--truncation-side", arguments.truncation_side,
                  "With --max-length: the side at which tokens are removed (default: the tokenizer's)")
      ->check(CLI::IsMember({"left", "right"}))
      ->type_name("SIDE")
      ->needs(max_length);
}

void add_output_options(CLI::App& verb, const std::shared_ptr<TokenizeArguments>& arguments) {
  auto* output = verb.add_option_group("output", "The output for each token");
  for (const auto& [name, value, text] :
       {std::tuple("--ids", TokenizeOutput::ids, "Its id (the default)"),
        {"--tokens", TokenizeOutput::tokens, "Its string in the vocabulary"},
        {"--offsets", TokenizeOutput::offsets, "Its range of code points in the line, as begin:end"},
        {"--type-ids", TokenizeOutput::type_ids,
         "Its segment: 0, or 1 for the second text of a pair where the model has segments"},
        {"--word-ids", TokenizeOutput::word_ids, "The index of its word; - for special tokens"},
        {"--sequence-ids", TokenizeOutput::sequence_ids, "0 or 1: its text; - for special tokens"},
        {"--json", TokenizeOutput::json,
         "All of these for each line, as a JSON object; with --stride a list of objects"},
        {"--decode", TokenizeOutput::text, "Read lines of ids instead, and print the text of each"}}) {
    output->add_flag_callback(
        name, [arguments, form = value] { arguments->output = form; }, text);
  }
  output->require_option(0, 1);
}

}  // namespace

void add_tokenize(CLI::App& app, int&) {
  auto arguments = std::make_shared<TokenizeArguments>();
  CLI::App* verb =
      app.add_subcommand("tokenize", "Print the tokens of each line of a text, or the text of token ids");
  verb->add_option("file", arguments->file, "A text file with one text per line (default: -, standard input)")
      ->type_name("FILE");
  verb->add_option(
          "--tokenizer", arguments->tokenizer,
          "A folder with tokenizer.json, vocab.txt, vocab.json and merges.txt, sentencepiece.bpe.model or tokenizer.model; or one of these files")
      ->required()
      ->type_name("PATH");
  verb->add_flag("--pair", arguments->pair, "Each line is two texts, separated by a tab");
  verb->add_flag(
      "--split-into-words", arguments->split_into_words,
      "White space separates words that the tokenizer reads one by one; --offsets then count in the word");
  add_output_options(*verb, arguments);
  verb->add_flag("--no-special", arguments->no_special,
                 "Do not add special tokens such as [CLS] and [SEP]; with --decode: omit them");
  add_truncation_options(*verb, *arguments);
  verb->add_option("--threads", arguments->threads, "Threads (default: 1; 0: one per processor)")
      ->check(arguments::whole_number_from(0, 1024))
      ->type_name("N");
  auto* letters = verb->add_option_group("case", "Override the tokenizer's files");
  letters->add_flag_callback(
      "--lowercase", [=] { arguments->options.lowercase = true; }, "Lower-case the text");
  letters->add_flag_callback(
      "--no-lowercase", [=] { arguments->options.lowercase = false; }, "Keep the text's case");
  letters->require_option(0, 1);
  auto* prefix = verb->add_option_group("prefix", "Override the tokenizer's files");
  prefix->add_flag_callback(
      "--add-prefix-space", [=] { arguments->options.add_prefix_space = true; },
      "Byte-level BPE: insert a space before each text");
  prefix->add_flag_callback(
      "--no-add-prefix-space", [=] { arguments->options.add_prefix_space = false; }, "Insert no space");
  prefix->require_option(0, 1);
  verb->callback([=] { run_tokenize(*arguments); });
}

}  // namespace stretto::cli
