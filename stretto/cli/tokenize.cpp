#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/line_reader.h"
#include "stretto/base/strings.h"
#include "stretto/cli/verbs.h"
#include "stretto/command/checks.h"
#include "stretto/text/encode_batch.h"
#include "stretto/text/tokenizer.h"

namespace stretto::cli {
namespace {

enum class TokenizeOutput { ids, tokens, offsets, text };

struct TokenizeArguments {
  std::string tokenizer;
  std::string file = "-";  // standard input
  TokenizeOutput output = TokenizeOutput::ids;
  bool no_special = false;
  std::optional<size_t> max_length;
  text::TokenizerOptions options;
  int threads = 1;
};

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

void append_line(const text::Tokenizer& tokenizer, const text::Encoding& encoding, TokenizeOutput output,
                 std::string& out) {
  const auto append = [&](auto number) { out.append(fmt::format_int(number).c_str()); };
  for (size_t i = 0; i < encoding.size(); ++i) {
    if (i > 0) out += ' ';
    switch (output) {
      case TokenizeOutput::ids:
        append(encoding.ids[i]);
        break;
      case TokenizeOutput::tokens:
        out += tokenizer.token(encoding.ids[i]).value_or("?");
        break;
      case TokenizeOutput::offsets:
        append(encoding.offsets[i].begin);
        out += ':';
        append(encoding.offsets[i].end);
        break;
      case TokenizeOutput::text:
        break;
    }
  }
  out += '\n';
}

// The text of a line of ids, which `place` names.
void append_text(const text::Tokenizer& tokenizer, std::string_view line, bool skip_special,
                 const std::string& place, std::string& out) {
  std::vector<int32_t> ids;
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (const std::string_view word : split(line, ' ')) {
    if (word.empty()) continue;
    const auto id = parse_int(word);
    if (!id || *id < 0 || *id >= tokenizer.vocab_size() || !tokenizer.token(static_cast<int32_t>(*id))) {
      throw DataError(
          "{}: \"{}\" is not the id of a token; expected ids from 0 to {} with a space between them", place,
          word, tokenizer.vocab_size() - 1);
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  out += tokenizer.decode(ids, {.skip_special_tokens = skip_special});
  out += '\n';
}

void run_tokenize(const TokenizeArguments& arguments) {
  const auto tokenizer = text::Tokenizer::load(expand_home(arguments.tokenizer), arguments.options);
  const text::EncodeOptions options{.special_tokens = !arguments.no_special,
                                    .max_length = arguments.max_length};
  LineReader input(arguments.file);
  // Writes the output of all complete lines before the next read, so that another program can use this one
  // interactively through two pipes.
  for (auto lines = input.next_lines(); !lines.empty(); lines = input.next_lines()) {
    std::vector<std::string> out(lines.size());
    text::run_in_parts(lines.size(), arguments.threads, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        if (arguments.output == TokenizeOutput::text) {
          const std::string place =
              fmt::format("{}:{}", input.name(), input.line_number() + static_cast<int64_t>(i));
          append_text(tokenizer, lines[i], arguments.no_special, place, out[i]);
        } else {
          append_line(tokenizer, tokenizer.encode(lines[i], options), arguments.output, out[i]);
        }
      }
    });
    std::string all;
    for (const std::string& line : out) all += line;
    if (!write_output(all)) return;
  }
}

}  // namespace

void add_tokenize(CLI::App& app, int&) {
  auto arguments = std::make_shared<TokenizeArguments>();
  CLI::App* verb =
      app.add_subcommand("tokenize", "Print the tokens of each line of a text, or the text of token ids");
  verb->add_option("file", arguments->file, "A text file with one text per line (default: standard input)")
      ->type_name("FILE");
  verb->add_option(
          "--tokenizer", arguments->tokenizer,
          "A folder with tokenizer.json, vocab.txt, vocab.json and merges.txt, or sentencepiece.bpe.model; or one of these files")
      ->required()
      ->type_name("PATH");
  auto* output = verb->add_option_group("output", "The output for each token");
  output->add_flag_callback(
      "--ids", [=] { arguments->output = TokenizeOutput::ids; }, "Its id (the default)");
  output->add_flag_callback(
      "--tokens", [=] { arguments->output = TokenizeOutput::tokens; }, "Its string in the vocabulary");
  output->add_flag_callback(
      "--offsets", [=] { arguments->output = TokenizeOutput::offsets; },
      "Its range of code points in the line, as begin:end");
  output->add_flag_callback(
      "--decode", [=] { arguments->output = TokenizeOutput::text; },
      "Read lines of ids instead, and print the text of each");
  output->require_option(0, 1);
  verb->add_flag("--no-special", arguments->no_special,
                 "Do not add special tokens such as [CLS] and [SEP]; with --decode: leave them out");
  verb->add_option("--max-length", arguments->max_length,
                   "Truncate to this many tokens, special tokens included")
      ->check(command::whole_number_from(0, 1'000'000'000))
      ->type_name("N");
  verb->add_option("--threads", arguments->threads, "Threads (default: 1; 0: one per processor)")
      ->check(command::whole_number_from(0, 1024))
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
      "Byte-level BPE: put a space in front of each text");
  prefix->add_flag_callback(
      "--no-add-prefix-space", [=] { arguments->options.add_prefix_space = false; }, "Put none there");
  prefix->require_option(0, 1);
  verb->callback([=] { run_tokenize(*arguments); });
}

}  // namespace stretto::cli
