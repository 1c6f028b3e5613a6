#include "stretto/serve/entity_finder.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/data/sentence_context.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/capabilities.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/text/utf8.h"

namespace stretto::serve {
namespace {

// Converts offsets in words to offsets in the text, in which a space follows each word.
void move_into_text(const std::vector<std::string>& words, std::vector<text::Encoding>& windows) {
  std::vector<uint32_t> starts;
  uint32_t start = 0;
  for (const std::string& word : words) {
    starts.push_back(start);
    start += static_cast<uint32_t>(text::count_code_points(word)) + 1;
  }
  for (text::Encoding& window : windows) {
    for (size_t t = 0; t < window.size(); ++t) {
      if (window.word_ids[t] < 0) continue;
      window.offsets[t].begin += starts[static_cast<size_t>(window.word_ids[t])];
      window.offsets[t].end += starts[static_cast<size_t>(window.word_ids[t])];
    }
  }
}

// Makes each token its own word. Consecutive windows share `stride` tokens.
void number_tokens(std::vector<text::Encoding>& windows, size_t stride) {
  size_t begin = 0;
  for (text::Encoding& window : windows) {
    size_t token = begin;
    for (size_t t = 0; t < window.size(); ++t)
      window.word_ids[t] = window.special_tokens_mask[t] != 0 ? -1 : static_cast<int32_t>(token++);
    begin = token - std::min(token - begin, stride);
  }
}

// The code points of the text from each word's first token to its last one.
std::vector<text::Offset> places_of_words(std::span<const text::Encoding> windows) {
  std::vector<text::Offset> places;
  for (const text::Encoding& window : windows) {
    for (size_t t = 0; t < window.size(); ++t) {
      if (window.word_ids[t] < 0) continue;
      const auto word = static_cast<size_t>(window.word_ids[t]);
      const auto [begin, end] = window.offsets[t];
      if (word >= places.size()) places.resize(word + 1, {begin, end});
      places[word] = {std::min(places[word].begin, begin), std::max(places[word].end, end)};
    }
  }
  return places;
}

}  // namespace

// The units that are tagged in an input: its words, or each token as a word.
struct EntityFinder::Sample {
  std::vector<text::Encoding> windows;  // offsets are those in the text
  std::vector<text::Offset> places;     // of each word in the text
  std::vector<data::WordFeatures> features;
};

EntityFinder::EntityFinder(const std::filesystem::path& folder, const PipelineOptions& options,
                           const ModelRegistry& models)
    : served_(folder, heads::token_classification, options, models),
      labeller_(labeller_of(*served_.model)),
      has_own_labeller_(served_.model->capabilities().sequence_labeller != nullptr),
      strategy_(options.aggregation_strategy.value_or("simple")) {
  find_entities({}, served_.model->labels(), strategy_);  // checks the strategy
  const WordReader reader = word_reader_of(*served_.model);
  if (reader.word_ids) words_ = text::Tokenizer::load(folder / text::words_folder);
  inputs_ = {text::Characters(reader.characters), reader.whole_words, words_ ? &*words_ : nullptr};
  separator_ = data::separator_id(reader.separator, served_.tokenizer);
}

// Byte-level BPE encodes each word with a space in front, as in training, even if the folder's settings do
// not add one to texts.
const text::Tokenizer& EntityFinder::tokenizer_of_words() const {
  std::call_once(split_loaded_,
                 [&] { split_.emplace(text::Tokenizer::load(served_.folder, {.add_prefix_space = true})); });
  return *split_;
}

// The words are those of the input, or those into which the tokenizer splits its text; for a model that tags
// tokens, each token is a word.
EntityFinder::Sample EntityFinder::sample_of(const PipelineInput& input) const {
  const auto longest = static_cast<size_t>(served_.model->limits().max_length), stride = longest / 4;
  const text::EncodeOptions options{.special_tokens = true, .max_length = longest, .stride = stride};
  Sample sample;
  sample.windows = input.words ? tokenizer_of_words().encode_windows(*input.words, options)
                               : served_.tokenizer.encode_windows(input.text, options);
  // Without special tokens, a text without words has no tokens.
  std::erase_if(sample.windows, [](const text::Encoding& window) { return window.size() == 0; });
  // As in training, a text that is split into windows has no separators.
  if (separator_ && sample.windows.size() == 1 && sample.windows[0].size() + 2 <= longest)
    data::surround(sample.windows[0], *separator_, served_.tokenizer);
  if (input.words) move_into_text(*input.words, sample.windows);
  if (!inputs_.whole_words) number_tokens(sample.windows, stride);
  sample.places = places_of_words(sample.windows);
  sample.features = features_of(sample, input, stride);
  return sample;
}

std::vector<data::WordFeatures> EntityFinder::features_of(const Sample& sample, const PipelineInput& input,
                                                          size_t stride) const {
  std::vector<std::string> words(sample.places.size());
  const bool are_given = input.words && inputs_.whole_words;
  const bool are_read = !inputs_.characters.empty() || inputs_.words != nullptr;
  for (size_t i = 0; are_read && i < words.size(); ++i) {
    words[i] = are_given ? (*input.words)[i]
                         : text::slice_code_points(input.text, sample.places[i].begin, sample.places[i].end);
  }
  std::vector<text::Encoding> windows = sample.windows;  // with offsets in words
  for (text::Encoding& window : windows) {
    for (size_t t = 0; t < window.size(); ++t) {
      if (window.word_ids[t] < 0) continue;
      const uint32_t begin = sample.places[static_cast<size_t>(window.word_ids[t])].begin;
      window.offsets[t] = {window.offsets[t].begin - begin, window.offsets[t].end - begin};
    }
  }
  return data::word_features(windows, words, stride, inputs_);
}

// Packs all windows of all inputs.
Batch EntityFinder::batch_of(std::span<const Sample> samples) const {
  std::vector<data::WordSample> rows;
  for (const Sample& sample : samples) {
    for (size_t k = 0; k < sample.windows.size(); ++k) {
      const data::WordFeatures& features = sample.features[k];
      rows.push_back({sample.windows[k].ids, features.words, features.characters, features.character_counts,
                      features.word_ids, std::ssize(rows)});
    }
  }
  return data::pack_words(rows, {!inputs_.characters.empty(), inputs_.whole_words},
                          served_.pad_to_multiple_of);
}

// Token t of a window with its word, without scores.
TaggedToken EntityFinder::token_of(const Sample& sample, const text::Encoding& window, size_t t,
                                   const std::string& text) const {
  const auto [begin, end] = sample.places[static_cast<size_t>(window.word_ids[t])];
  const std::string spelled = text::slice_code_points(text, begin, end);
  TaggedToken token;
  token.begin = begin;
  token.end = end;
  token.word = inputs_.whole_words ? spelled : served_.tokenizer.token(window.ids[t]).value_or("?");
  if (token.word == "[UNK]" || token.word == "<unk>") token.word = spelled;
  // Hugging Face's rule for WordPiece: a token that continues a word is longer than its text, by the
  // characters ##.
  token.continues_word = text::count_code_points(token.word) != text::count_code_points(spelled);
  return token;
}

std::vector<std::vector<TaggedToken>> EntityFinder::tag(std::span<const PipelineInput> inputs,
                                                        bool raw) const {
  at::NoGradGuard no_grad;
  std::vector<std::vector<TaggedToken>> all(inputs.size());
  std::vector<Sample> samples;
  for (const PipelineInput& input : inputs) samples.push_back(sample_of(input));
  const Batch batch = batch_of(samples);
  if (batch.count == 0) return all;
  const Tensor logits = served_.logits(batch);
  const Tensor best = labeller_.best_tags(logits, batch).contiguous();
  const Tensor scores = (raw ? logits : labeller_.probabilities(logits, batch)).contiguous();
  const int64_t width = scores.size(1);
  const bool finite = at::isfinite(logits).all().item<bool>();
  int64_t row = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Sample& sample = samples[i];
    for (size_t k = 0; k < sample.windows.size(); ++k) {
      const text::Encoding& window = sample.windows[k];
      if (!finite)
        served_.require_finite(logits.slice(0, row, row + static_cast<int64_t>(window.size())),
                               inputs[i].text);
      for (size_t t = 0; t < window.size(); ++t, ++row) {
        if (!data::begins_word(sample.features[k].words, t)) continue;
        TaggedToken& token = all[i].emplace_back(token_of(sample, window, t, inputs[i].text));
        token.index = std::ssize(all[i]);
        const double* const values = scores.const_data_ptr<double>() + row * width;
        token.scores.assign(values, values + width);
        if (has_own_labeller_) token.best = static_cast<size_t>(best.const_data_ptr<int64_t>()[row]);
      }
    }
  }
  return all;
}

std::vector<nlohmann::ordered_json> EntityFinder::predict(std::span<const PipelineInput> inputs,
                                                          const std::string& output) const {
  if (output != "label" && output != "scores" && output != "logits" && output != "pipeline")
    throw ConfigError("output: \"{}\" is not one of label, scores, logits, pipeline", output);
  const auto tagged = tag(inputs, output == "logits");
  const auto& labels = served_.model->labels();
  std::vector<nlohmann::ordered_json> records;
  for (size_t i = 0; i < inputs.size(); ++i) {
    nlohmann::ordered_json record = {{"text", inputs[i].text}};
    if (output == "label" || output == "pipeline") {
      nlohmann::ordered_json entities = nlohmann::ordered_json::array();
      for (const Entity& entity : find_entities(tagged[i], labels, strategy_)) {
        const bool single = strategy_ == "none";
        nlohmann::ordered_json item = {{single ? "entity" : "entity_group", entity.type},
                                       {"score", entity.score}};
        if (single) item["index"] = entity.index;
        item["word"] = entity.word;
        item["start"] = entity.begin;
        item["end"] = entity.end;
        entities.push_back(std::move(item));
      }
      if (output == "pipeline") {
        record = std::move(entities);
      } else {
        record["entities"] = std::move(entities);
      }
      records.push_back(std::move(record));
      continue;
    }
    record["tokens"] = nlohmann::ordered_json::array();
    for (const TaggedToken& token : tagged[i]) {
      nlohmann::ordered_json item = {{"word", token.word}, {"start", token.begin}, {"end", token.end}};
      if (output == "logits") {
        item["logits"] = token.scores;
      } else {
        for (size_t tag = 0; tag < labels.size(); ++tag) item["scores"][labels[tag]] = token.scores[tag];
      }
      record["tokens"].push_back(std::move(item));
    }
    records.push_back(std::move(record));
  }
  return records;
}

PipelineType token_classification_pipeline() {
  return {.name = heads::token_classification,
          .task = "token-classification",
          .outputs = {"label", "scores", "logits", "pipeline"},
          .options = {"aggregation_strategy", "split_into_words"},
          .make = make_pipeline<EntityFinder>};
}

}  // namespace stretto::serve
