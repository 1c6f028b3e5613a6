#include "stretto/serve/text_generation.h"

#include <algorithm>
#include <atomic>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/generate/text_generator.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/serve/served_model.h"

namespace stretto {
namespace {

// Throws before anything is loaded. A decoder with another head would otherwise use its word embeddings as
// the head and generate nonsense.
const std::filesystem::path& checked(const std::filesystem::path& folder) {
  const auto file = folder / "config.json";
  const std::string architecture = architecture_of(read_config_json(file));
  if (head_of(architecture) == heads::causal_language_model) return folder;
  throw ConfigError(
      "{}: architectures: \"{}\" does not predict next tokens; expected a language model (...For{}), such as RUN/model of task: causal-lm",
      file.string(), architecture, heads::causal_language_model);
}

// Names the folder's chat template, which generation does not apply.
void note_chat_template(const std::filesystem::path& folder) {
  const auto config = folder / "tokenizer_config.json";
  const bool has_template = std::filesystem::exists(folder / "chat_template.jinja") ||
                            (std::filesystem::exists(config) &&
                             !read_json(config).value("chat_template", nlohmann::json()).is_null());
  if (has_template)
    log::info("{}: its chat_template is not applied; prompts are continued as they are", folder.string());
}

}  // namespace

std::unique_ptr<TextGenerator> load_text_generator(const std::filesystem::path& folder,
                                                   TextGeneratorOptions options,
                                                   const PipelineOptions& loading,
                                                   const ModelRegistry& models) {
  const auto served =
      std::make_shared<serve::ServedModel>(checked(folder), heads::causal_language_model, loading, models);
  note_chat_template(folder);
  return std::make_unique<TextGenerator>(*served->model, served->tokenizer, std::move(options), served);
}

namespace serve {
namespace {

// Continues texts by the options in the folder's generation_config.json.
class TextContinuation : public Pipeline {
 public:
  TextContinuation(const std::filesystem::path& folder, const PipelineOptions& options,
                   const ModelRegistry& models)
      : served_(folder, heads::causal_language_model, options, models),
        generation_(read_generation_config(folder)) {
    note_chat_template(folder);
  }

  InputKind input_kind() const override { return InputKind::text; }

  // `output`: label (text, and generated_text or with several of them generated_texts, as `stretto generate`
  // prints them), or pipeline (a list with generated_text, which begins with the prompt).
  std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                              const std::string& output) const override;

 private:
  nlohmann::ordered_json record_of(const std::string& text, const std::vector<GeneratedText>& found,
                                   const std::string& output) const;

  ServedModel served_;
  GenerationOptions generation_;
  mutable std::atomic<int64_t> next_ = 0;  // the number of the next input, on which random numbers depend
};

nlohmann::ordered_json TextContinuation::record_of(const std::string& text,
                                                   const std::vector<GeneratedText>& found,
                                                   const std::string& output) const {
  if (output == "pipeline") {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    // The new tokens are decoded without the prompt, as in transformers, which may lose a space.
    for (const GeneratedText& one : found)
      list.push_back({{"generated_text", text + served_.tokenizer.decode(one.token_ids)}});
    return list;
  }
  nlohmann::ordered_json record = {{"text", text}};
  if (found.size() == 1) {
    record["generated_text"] = found.front().text;
  } else {
    for (const GeneratedText& one : found) record["generated_texts"].push_back(one.text);
  }
  return record;
}

std::vector<nlohmann::ordered_json> TextContinuation::predict(std::span<const PipelineInput> inputs,
                                                              const std::string& output) const {
  if (output != "label" && output != "pipeline")
    throw ConfigError("output: \"{}\" is not one of label, pipeline for text generation", output);
  std::vector<nlohmann::ordered_json> records;
  TextGenerator generator(*served_.model, served_.tokenizer,
                          {.generation = generation_,
                           .batch_size = std::max<int64_t>(1, std::ssize(inputs)),
                           .on_text = [&](int64_t, const std::string& text, const auto& found) {
                             records.push_back(record_of(text, found, output));
                           }});
  for (const PipelineInput& input : inputs) generator.require(input.text);
  int64_t number = next_.fetch_add(std::ssize(inputs));
  for (const PipelineInput& input : inputs) generator.add(input.text, number++);
  generator.finish();
  return records;
}

}  // namespace

PipelineType text_generation_pipeline() {
  return {.name = heads::causal_language_model,
          .task = "text-generation",
          .outputs = {"label", "pipeline"},
          .options = {},
          .make = make_pipeline<TextContinuation>};
}

}  // namespace serve
}  // namespace stretto
