#include "stretto/generate/text_generator.h"

#include <map>

#include "stretto/base/error.h"
#include "stretto/generate/generator.h"
#include "stretto/generate/text_stream.h"

namespace stretto {
namespace {

using generate::Generator;
using generate::GeneratorParts;
using generate::SearchEvents;
using generate::TextStream;

TextGeneratorOptions with_end_token(TextGeneratorOptions options, const text::Tokenizer& tokenizer) {
  if (options.generation.eos_token_id.empty()) {
    if (const auto end = tokenizer.eos_id()) options.generation.eos_token_id = {*end};
  }
  return options;
}

}  // namespace

struct TextGenerator::State {
  State(const TextModel& model, const text::Tokenizer& the_tokenizer, TextGeneratorOptions given,
        std::shared_ptr<const void> the_owner)
      : owner(std::move(the_owner)),
        options(with_end_token(std::move(given), the_tokenizer)),
        tokenizer(the_tokenizer),
        generator(parts_of(model)) {}

  GeneratorParts parts_of(const TextModel& model) {
    SearchEvents events;
    if (!options.generation.stop_strings.empty()) {
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
        .model = model,
        .options = options.generation,
        .batch_size = options.batch_size,
        .events = std::move(events),
        .on_generated = [this](int64_t prompt,
                               const std::vector<std::vector<int32_t>>& tokens) { deliver(prompt, tokens); },
        .before_pass = options.before_pass,
        .kernels = options.kernels,
        .names = options.names};
  }

  // The tokens that the template adds after a text are omitted, since the text continues.
  std::vector<int32_t> prompt_ids(const std::string& text) const {
    std::vector<int32_t> ids = tokenizer.encode(text).ids;
    ids.resize(ids.size() - tokenizer.template_ids().after.size());
    return ids;
  }

  void show(int64_t prompt, int32_t token) {
    Text& text = texts.at(prompt);
    const std::string piece = text.stream.add(token);
    if (piece.empty()) return;
    options.on_piece(prompt, piece);
    text.shown += piece.size();
  }

  void deliver(int64_t prompt, const std::vector<std::vector<int32_t>>& sequences) {
    const auto ended = texts.extract(prompt);
    const Text& text = ended.mapped();
    std::vector<GeneratedText> found;
    for (const auto& tokens : sequences) found.push_back({text.stream.text(tokens), tokens});
    if (options.on_piece && options.generation.num_beams == 1 && found[0].text.size() > text.shown)
      options.on_piece(prompt, std::string_view(found[0].text).substr(text.shown));
    if (options.on_text) options.on_text(prompt, text.prompt, found);
  }

  // A prompt that is being continued.
  struct Text {
    std::string prompt;
    TextStream stream;
    size_t shown = 0;  // bytes of the first continuation that were passed to on_piece
  };

  std::shared_ptr<const void> owner;
  TextGeneratorOptions options;
  const text::Tokenizer& tokenizer;
  std::map<int64_t, Text> texts;
  int64_t next = 0;
  Generator generator;
};

TextGenerator::TextGenerator(const TextModel& model, const text::Tokenizer& tokenizer,
                             TextGeneratorOptions options, std::shared_ptr<const void> owner)
    : state_(std::make_unique<State>(model, tokenizer, std::move(options), std::move(owner))) {}

TextGenerator::~TextGenerator() = default;

void TextGenerator::require(const std::string& text) const {
  state_->generator.require_prompt(state_->prompt_ids(text));
}

void TextGenerator::add(const std::string& text, std::optional<int64_t> number) {
  std::vector<int32_t> ids = state_->prompt_ids(text);
  state_->generator.require_prompt(ids);
  const int64_t index = number.value_or(state_->next);
  state_->next = index + 1;
  state_->texts.emplace(
      index, State::Text{text, TextStream(state_->tokenizer, ids, state_->options.generation.stop_strings)});
  state_->generator.add(std::move(ids), index);
}

void TextGenerator::finish() { state_->generator.finish(); }

}  // namespace stretto
