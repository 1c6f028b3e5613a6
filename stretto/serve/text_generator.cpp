#include "stretto/serve/text_generator.h"

#include <map>

#include "stretto/base/error.h"
#include "stretto/generate/generator.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/serve/served_model.h"
#include "stretto/serve/text_stream.h"

namespace stretto {
namespace {

// Returns the text after its first `shown` bytes, from the beginning of a character: a later token can change
// how preceding invalid bytes are decoded.
std::string_view rest(std::string_view text, size_t shown) {
  while (shown < text.size() && (static_cast<unsigned char>(text[shown]) & 0xC0) == 0x80) ++shown;
  return text.substr(shown);
}

// Throws before anything is loaded. A decoder with another head would otherwise use its word embeddings as
// the head and generate nonsense.
void require_head(const std::filesystem::path& folder) {
  const auto file = folder / "config.json";
  const std::string architecture = architecture_of(read_config_json(file));
  if (architecture.ends_with("LMHeadModel") ||
      architecture.ends_with(std::string("For") + heads::causal_language_model))
    return;
  throw ConfigError(
      "{}: architectures: \"{}\" does not predict next tokens; expected a language model (...For{}), such as RUN/model of task: causal-lm",
      file.string(), architecture, heads::causal_language_model);
}

PipelineOptions loading(const TextGeneratorOptions& options) {
  return {.dtype = options.dtype,
          .allow_nonfinite = options.allow_nonfinite,
          .choose_matmul_libraries = options.choose_matmul_libraries,
          .names = options.names};
}

std::filesystem::path checked(const std::filesystem::path& folder, const TextGeneratorOptions& options) {
  require_head(folder);
  for (const std::string& stop : options.stop)
    if (stop.empty()) throw ConfigError("{}: a string is empty; expected text", options.names("stop"));
  return folder;
}

}  // namespace

struct TextGenerator::State {
  State(const std::filesystem::path& folder, TextGeneratorOptions given, const ModelRegistry& models)
      : options(std::move(given)),
        served(checked(folder, options), heads::causal_language_model, loading(options), models),
        generator(parts()) {}

  generate::GeneratorParts parts() {
    if (options.generation.eos_token_id.empty()) {
      if (const auto end = served.tokenizer.eos_id()) options.generation.eos_token_id = {*end};
    }
    generate::SearchEvents events;
    if (!options.stop.empty()) {
      events.is_end = [this](int64_t prompt, const std::vector<int32_t>& tokens) {
        return texts.at(prompt).stream.is_stopped(tokens);
      };
    }
    if (options.on_piece) {
      events.on_token = [this](int64_t prompt, int64_t sequence, int32_t token) {
        if (sequence == 0) show(prompt, token);
      };
    }
    return {
        .model = *served.model,
        .options = options.generation,
        .batch_size = options.batch_size,
        .events = std::move(events),
        .on_generated = [this](int64_t prompt,
                               const std::vector<std::vector<int32_t>>& tokens) { deliver(prompt, tokens); },
        .names = options.names};
  }

  // The tokens that the template adds after a text are omitted, since the text continues.
  std::vector<int32_t> prompt_ids(const std::string& text) const {
    std::vector<int32_t> ids = served.tokenizer.encode(text).ids;
    ids.resize(ids.size() - served.tokenizer.template_ids().after.size());
    return ids;
  }

  void show(int64_t prompt, int32_t token) {
    Text& text = texts.at(prompt);
    text.tokens.push_back(token);
    const std::string settled = text.stream.settled(text.tokens);
    if (settled.size() <= text.shown) return;
    options.on_piece(prompt, rest(settled, text.shown));
    text.shown = settled.size();
  }

  void deliver(int64_t prompt, const std::vector<std::vector<int32_t>>& sequences) {
    const auto ended = texts.extract(prompt);
    const Text& text = ended.mapped();
    std::vector<GeneratedText> found;
    for (const auto& tokens : sequences) found.push_back({text.stream.text(tokens), tokens});
    if (options.on_piece && options.generation.num_beams == 1 && found[0].text.size() > text.shown)
      options.on_piece(prompt, rest(found[0].text, text.shown));
    if (options.on_text) options.on_text(prompt, text.prompt, found);
  }

  // A prompt that is being continued.
  struct Text {
    std::string prompt;
    serve::TextStream stream;
    std::vector<int32_t> tokens = {};  // of the first continuation
    size_t shown = 0;                  // the number of bytes of its text that were passed to on_piece
  };

  TextGeneratorOptions options;
  serve::ServedModel served;
  std::map<int64_t, Text> texts;
  int64_t added = 0;
  generate::Generator generator;
};

TextGenerator::TextGenerator(const std::filesystem::path& folder, TextGeneratorOptions options,
                             const ModelRegistry& models)
    : state_(std::make_unique<State>(folder, std::move(options), models)) {}

TextGenerator::~TextGenerator() = default;

void TextGenerator::require(const std::string& text) const {
  state_->generator.require_prompt(state_->prompt_ids(text));
}

void TextGenerator::add(const std::string& text) {
  std::vector<int32_t> ids = state_->prompt_ids(text);
  state_->generator.require_prompt(ids);
  state_->texts.emplace(state_->added++, State::Text{text, serve::TextStream(state_->served.tokenizer, ids,
                                                                             state_->options.stop)});
  state_->generator.add(std::move(ids));
}

void TextGenerator::finish() { state_->generator.finish(); }

}  // namespace stretto
