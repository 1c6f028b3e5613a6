#include <functional>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/comm/job.h"
#include "stretto/generate/text_generator.h"
#include "stretto/programs/stretto_rank/shared_prompts.h"
#include "stretto/programs/stretto_rank/text_output.h"
#include "stretto/programs/stretto_rank/text_source.h"
#include "stretto/programs/stretto_rank/verbs.h"
#include "stretto/serve/pipeline.h"
#include "stretto/weights/hub_cache.h"

namespace stretto::rank {
namespace {

const OptionNames option_flags = {{"path", "--input"},
                                  {"InputFormat::text", "--input-format text"},
                                  {"InputFormat::json", "--input-format json"},
                                  {"InputFormat::jsonl", "--input-format jsonl"},
                                  {"allow_nonfinite", "--allow-nonfinite"},
                                  {"stop_strings", "--stop"},
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
                                  {"typical_p", "--typical-p"},
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
    if (!given) return false;
    const auto& value = *given;
    option = value;
    return true;
  };
  take(arguments.max_new_tokens, options.max_new_tokens);
  take(arguments.min_new_tokens, options.min_new_tokens);
  take(arguments.repetition_penalty, options.repetition_penalty);
  take(arguments.no_repeat_ngram_size, options.no_repeat_ngram_size);
  take(arguments.num_return_sequences, options.num_return_sequences);
  take(arguments.num_beams, options.num_beams);
  take(arguments.do_sample, options.do_sample);
  if (!arguments.stop.empty()) options.stop_strings = arguments.stop;
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
  take_if(options.do_sample, sampling, arguments.typical_p, options.typical_p, "typical_p");
  take_if(options.do_sample, sampling, arguments.seed, options.seed, "seed");
  const bool has_beams = options.num_beams != 1;
  const char* beams = "--num-beams of 2 or more";
  std::optional<EarlyStopping> early_stopping;
  if (arguments.early_stopping) early_stopping = parse_enum<EarlyStopping>(*arguments.early_stopping);
  take_if(has_beams, beams, arguments.length_penalty, options.length_penalty, "length_penalty");
  take_if(has_beams, beams, early_stopping, options.early_stopping, "early_stopping");
  return options;
}

// Calls `use` with each prompt, and `finish` after the last one, or after those before an invalid one.
void read_prompts(const TextSource& source, const TextGenerator& generator,
                  const std::function<void(const std::string&)>& use, const std::function<void()>& finish) {
  try {
    source.read({.kind = InputKind::text, .names = option_flags},
                [&](const PipelineInput& input, const std::string& place) {
                  try {
                    generator.require(input.text);
                  } catch (const DataError& error) {
                    throw DataError("{}: {}", place, error.what());
                  }
                  use(input.text);
                });
  } catch (const DataError&) {
    finish();
    throw;
  }
  finish();
}

// Continues the texts of `source` one after the other, and prints tokens as they arrive.
void generate_here(const arguments::GenerateArguments& arguments, const TextSource& source,
                   const std::filesystem::path& model, TextGeneratorOptions options,
                   PipelineOptions loading) {
  loading.device = comm::choose_own_device(arguments.device, "--device");
  end_output_on_signals(arguments.json);
  TextOutput output(arguments.json);
  const bool streams = options.generation.num_beams == 1 && !arguments.json;
  if (streams) options.on_piece = [&](int64_t prompt, std::string_view piece) { output.add(prompt, piece); };
  options.on_text = [&](int64_t, const std::string& text, const auto& found) {
    output.end(text, found, streams);
  };
  const auto generator = load_text_generator(model, options, loading);
  read_prompts(
      source, *generator,
      [&](const std::string& text) {
        output.begin(text);
        generator->add(text);
      },
      [&] { generator->finish(); });
}

// Continues the texts that rank 0 reads on all ranks; rank 0 prints them.
void generate_on_ranks(const arguments::GenerateArguments& arguments, const TextSource& source,
                       const std::filesystem::path& model, TextGeneratorOptions options,
                       PipelineOptions loading) {
  const comm::Job job = comm::join_job(arguments.device, "--device");
  log::set_rank(job.info.rank, /*prints_info=*/job.info.rank == 0);
  loading.group = job.group.get();
  loading.device = job.device;
  TextOutput output(arguments.json);
  std::vector<std::vector<GeneratedText>>* results = nullptr;
  options.on_text = [&](int64_t, const std::string&, const auto& found) { results->push_back(found); };
  const auto generator = load_text_generator(model, options, loading);
  SharedPrompts prompts(
      *job.group, arguments.batch_size,
      [&](const std::vector<std::string>& texts, int64_t first, int64_t stride, auto& found) {
        results = &found;
        for (size_t i = 0; i < texts.size(); ++i)
          generator->add(texts[i], first + static_cast<int64_t>(i) * stride);
        generator->finish();
      },
      [&](const std::string& text, const auto& found) {
        output.begin(text);
        output.end(text, found, /*streamed=*/false);
      });
  if (job.info.rank != 0) return prompts.serve();
  try {
    read_prompts(
        source, *generator, [&](const std::string& text) { prompts.add(text); }, [&] { prompts.finish(); });
  } catch (...) {
    prompts.end();
    throw;
  }
  prompts.end();
}

}  // namespace

void generate(const arguments::GenerateArguments& arguments) {
  ignore_write_signals();
  const std::filesystem::path model = hub::resolve_model(arguments.model);
  const TextSource source(arguments, option_flags);
  const TextGeneratorOptions options = {
      .generation = options_of(model, arguments), .batch_size = arguments.batch_size, .names = option_flags};
  const PipelineOptions loading = {.dtype = compute_dtype(parse_precision(arguments.precision)),
                                   .allow_nonfinite = arguments.allow_nonfinite,
                                   .choose_matmul_libraries = true,
                                   .names = option_flags};
  arguments.ranks > 1 ? generate_on_ranks(arguments, source, model, options, loading)
                      : generate_here(arguments, source, model, options, loading);
}

}  // namespace stretto::rank
