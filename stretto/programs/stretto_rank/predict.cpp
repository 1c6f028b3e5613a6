#include <algorithm>
#include <iostream>
#include <limits>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/comm/job.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto_rank/text_source.h"
#include "stretto/programs/stretto_rank/verbs.h"
#include "stretto/serve/pipeline.h"
#include "stretto/weights/hub_cache.h"

namespace stretto::rank {
namespace {

// Predicts inputs in batches and prints the records in their order.
class Printer {
 public:
  Printer(const Pipeline& pipeline, const arguments::PredictArguments& arguments)
      : pipeline_(pipeline), output_(arguments.output), batch_size_(arguments.batch_size) {}

  void add(PipelineInput input, const std::string& place) {
    inputs_.push_back(std::move(input));
    places_.push_back(place);
    if (std::ssize(inputs_) == batch_size_) flush();
  }

  void flush() {
    const auto inputs = std::exchange(inputs_, {});
    const auto places = std::exchange(places_, {});
    if (inputs.empty()) return;
    try {
      return print(inputs);
    } catch (const DataError&) {  // one input is invalid: the records of earlier ones are printed
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      try {
        print({&inputs[i], 1});
      } catch (const DataError& error) {
        throw DataError("{}: {}", places[i], error.what());
      }
    }
  }

 private:
  void print(std::span<const PipelineInput> inputs) const {
    for (const auto& record : pipeline_.predict(inputs, output_))
      std::cout << escape_controls(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                   ControlEscape::json)
                << "\n";
    arguments::flush_standard_output();
  }

  const Pipeline& pipeline_;
  std::string output_;
  int64_t batch_size_;
  std::vector<PipelineInput> inputs_;
  std::vector<std::string> places_;
};

std::optional<int64_t> top_k_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return parse_int(text).value_or(std::numeric_limits<int64_t>::max());  // all
}

const OptionNames flag_names = {
    {"path", "--input"},
    {"InputFormat::text", "--input-format text"},
    {"InputFormat::json", "--input-format json"},
    {"InputFormat::jsonl", "--input-format jsonl"},
    {"top_k", "--top-k"},
    {"aggregation_strategy", "--aggregation-strategy"},
    {"handle_impossible_answer", "--handle-impossible-answer"},
    {"split_into_words", "--split-into-words"},
    {"allow_nonfinite", "--allow-nonfinite"},
    {"members of PipelineOptions, such as top_k", "options of stretto predict, such as --top-k"}};

// Throws for options that do not apply, before the model is loaded.
void check_options(const std::filesystem::path& model, const arguments::PredictArguments& arguments) {
  const PipelineType& type = pipeline_type(model);
  if (std::ranges::find(type.outputs, arguments.output) == type.outputs.end()) {
    throw ConfigError("--output {}: the model in {} does {}; expected one of {}", arguments.output,
                      model.string(), type.task, fmt::join(type.outputs, ", "));
  }
  const auto require = [&](const char* option) {
    require_option(model, option, bundled_pipelines(), flag_names);
  };
  if (!arguments.aggregation_strategy.empty()) require("aggregation_strategy");
  if (!arguments.top_k.empty()) require("top_k");
  if (arguments.handle_impossible_answer) require("handle_impossible_answer");
  if (arguments.split_into_words) require("split_into_words");
  const bool chooses = arguments.output == "label" || arguments.output == "pipeline";
  const char* unused = !arguments.top_k.empty()                  ? "--top-k"
                       : !arguments.aggregation_strategy.empty() ? "--aggregation-strategy"
                       : arguments.handle_impossible_answer      ? "--handle-impossible-answer"
                                                                 : nullptr;
  if (!chooses && unused != nullptr)
    throw ConfigError("{} applies to --output label and pipeline; --output {} prints all", unused,
                      arguments.output);
}

}  // namespace

void predict(const arguments::PredictArguments& arguments) {
  const std::filesystem::path model = hub::resolve_model(arguments.model);
  check_options(model, arguments);
  const TextSource source(arguments, flag_names);
  PipelineOptions options = {.dtype = compute_dtype(parse_precision(arguments.precision)),
                             .device = comm::choose_own_device(arguments.device, "--device"),
                             .allow_nonfinite = arguments.allow_nonfinite,
                             .choose_matmul_libraries = true,
                             .top_k = top_k_of(arguments.top_k),
                             .handle_impossible_answer = arguments.handle_impossible_answer,
                             .names = flag_names};
  if (!arguments.aggregation_strategy.empty()) options.aggregation_strategy = arguments.aggregation_strategy;
  const auto pipeline = load_pipeline(model, options);
  const InputParser parser = {
      .kind = pipeline->input_kind(), .split_into_words = arguments.split_into_words, .names = flag_names};
  Printer printer(*pipeline, arguments);
  try {
    source.read(parser,
                [&](PipelineInput input, const std::string& place) { printer.add(std::move(input), place); });
  } catch (const DataError&) {
    printer.flush();
    throw;
  }
  printer.flush();
}

}  // namespace stretto::rank
