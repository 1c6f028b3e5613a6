#include <deque>
#include <iostream>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto_rank/text_source.h"
#include "stretto/programs/stretto_rank/verbs.h"
#include "stretto/serve/text_generator.h"
#include "stretto/weights/hub_cache.h"

namespace stretto::rank {
namespace {

const OptionNames option_flags = {{"path", "--input"},
                                  {"InputFormat::text", "--input-format text"},
                                  {"InputFormat::json", "--input-format json"},
                                  {"InputFormat::jsonl", "--input-format jsonl"},
                                  {"allow_nonfinite", "--allow-nonfinite"},
                                  {"stop", "--stop"},
                                  {"max_new_tokens", "--max-new-tokens"},
                                  {"min_new_tokens", "--min-new-tokens"},
                                  {"num_beams", "--num-beams"},
                                  {"length_penalty", "--length-penalty"},
                                  {"early_stopping", "--early-stopping"},
                                  {"do_sample", "--do-sample"},
                                  {"temperature", "--temperature"},
                                  {"top_k", "--top-k"},
                                  {"top_p", "--top-p"},
                                  {"min_p", "--min-p"},
                                  {"seed", "--seed"},
                                  {"repetition_penalty", "--repetition-penalty"},
                                  {"no_repeat_ngram_size", "--no-repeat-ngram-size"},
                                  {"num_return_sequences", "--num-return-sequences"}};

// Returns the options of the folder, overridden by those of the command line. Throws ConfigError for an
// option without effect.
GenerationOptions options_of(const std::filesystem::path& model,
                             const arguments::GenerateArguments& arguments) {
  GenerationOptions options = read_generation_config(model);
  const auto take = [](const auto& given, auto& option) {
    if (given) option = *given;
    return given.has_value();
  };
  take(arguments.max_new_tokens, options.max_new_tokens);
  take(arguments.min_new_tokens, options.min_new_tokens);
  take(arguments.repetition_penalty, options.repetition_penalty);
  take(arguments.no_repeat_ngram_size, options.no_repeat_ngram_size);
  take(arguments.num_return_sequences, options.num_return_sequences);
  take(arguments.num_beams, options.num_beams);
  take(arguments.do_sample, options.do_sample);
  const auto take_if = [&](bool has_effect, const char* needed, const auto& given, auto& option,
                           const char* name) {
    if (take(given, option) && !has_effect)
      throw ConfigError("{} has no effect without {}", option_flags(name), needed);
  };
  const char* sampling = "--do-sample";
  take_if(options.do_sample, sampling, arguments.temperature, options.temperature, "temperature");
  take_if(options.do_sample, sampling, arguments.top_k, options.top_k, "top_k");
  take_if(options.do_sample, sampling, arguments.top_p, options.top_p, "top_p");
  take_if(options.do_sample, sampling, arguments.min_p, options.min_p, "min_p");
  take_if(options.do_sample, sampling, arguments.seed, options.seed, "seed");
  const bool has_beams = options.num_beams != 1;
  const char* beams = "--num-beams of 2 or more";
  std::optional<EarlyStopping> early_stopping;
  if (arguments.early_stopping) early_stopping = parse_enum<EarlyStopping>(*arguments.early_stopping);
  take_if(has_beams, beams, arguments.length_penalty, options.length_penalty, "length_penalty");
  take_if(has_beams, beams, early_stopping, options.early_stopping, "early_stopping");
  return options;
}

void print_json(const std::string& text, const std::vector<GeneratedText>& found) {
  for (const GeneratedText& one : found) {
    const nlohmann::ordered_json record = {
        {"text", text}, {"generated_text", one.text}, {"token_ids", one.token_ids}};
    std::cout << escape_controls(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                 ControlEscape::json)
              << "\n";
  }
  arguments::flush_standard_output();
}

// Prints prompts and their continuations in the order of the prompts. The tokens of the first unfinished one
// are printed as they arrive.
class Terminal {
 public:
  void begin(const std::string& prompt) {
    shown_.push_back(prompt);
    if (shown_.size() == 1) print(prompt);
  }

  void add(int64_t prompt, std::string_view piece) {
    if (prompt == first_) return print(piece);
    shown_[static_cast<size_t>(prompt - first_)] += piece;
  }

  // `streamed`: the first text was added piece by piece.
  void end(const std::string& prompt, const std::vector<GeneratedText>& found, bool streamed) {
    for (size_t i = 0; i < found.size(); ++i) {
      if (i > 0) print(prompt);
      if (i > 0 || !streamed) print(found[i].text);
      print("\n");
    }
    shown_.pop_front();
    ++first_;
    if (!shown_.empty()) print(shown_.front());
  }

 private:
  static void print(std::string_view text) {
    std::cout << escape_controls(text, ControlEscape::hexadecimal);
    arguments::flush_standard_output();
  }

  std::deque<std::string> shown_;  // of prompts that have not ended: the text so far
  int64_t first_ = 0;              // the prompt whose text is shown_.front(), which was printed
};

}  // namespace

void generate(const arguments::GenerateArguments& arguments) {
  const std::filesystem::path model = hub::resolve_model(arguments.model);
  const TextSource source(arguments, option_flags);
  Terminal terminal;
  TextGeneratorOptions options = {.generation = options_of(model, arguments),
                                  .stop = arguments.stop,
                                  .batch_size = arguments.batch_size,
                                  .dtype = compute_dtype(parse_precision(arguments.precision)),
                                  .allow_nonfinite = arguments.allow_nonfinite,
                                  .choose_matmul_libraries = true,
                                  .names = option_flags};
  const bool streams = options.generation.num_beams == 1;
  if (arguments.json) {
    options.on_text = [](int64_t, const std::string& text, const auto& found) { print_json(text, found); };
  } else {
    if (streams)
      options.on_piece = [&](int64_t prompt, std::string_view piece) { terminal.add(prompt, piece); };
    options.on_text = [&](int64_t, const std::string& text, const auto& found) {
      terminal.end(text, found, streams);
    };
  }
  TextGenerator generator(model, options);
  try {
    source.read({.kind = InputKind::text, .names = option_flags},
                [&](const PipelineInput& input, const std::string& place) {
                  try {
                    generator.require(input.text);
                  } catch (const DataError& error) {
                    throw DataError("{}: {}", place, error.what());
                  }
                  if (!arguments.json) terminal.begin(input.text);
                  generator.add(input.text);
                });
  } catch (const DataError&) {
    generator.finish();
    throw;
  }
  generator.finish();
}

}  // namespace stretto::rank
