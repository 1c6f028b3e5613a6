#include "stretto/serve/entity_finder.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/data/character_rows.h"
#include "stretto/data/packing.h"
#include "stretto/models/tagging.h"
#include "stretto/text/characters.h"
#include "stretto/text/utf8.h"

namespace stretto {
namespace {

// Where the tokens of a window are in a text: windows share `shared` tokens, and each token is taken from the window in which it
// is farthest from the ends.
struct Window {
  size_t input = 0;
  size_t begin = 0;  // its first token, among those of the text
  text::Encoding encoding;
};

// The windows as one batch, with all that models of any kind read.
Batch pack(const std::vector<Window>& windows, std::span<const PipelineInput> inputs,
           const text::Characters& known, int64_t multiple_of) {
  std::vector<data::TokenSequence> sequences;
  std::vector<std::vector<uint8_t>> types;
  for (const Window& window : windows)
    types.emplace_back(window.encoding.type_ids.begin(), window.encoding.type_ids.end());
  for (size_t k = 0; k < windows.size(); ++k)
    sequences.push_back({windows[k].encoding.ids, types[k], static_cast<int64_t>(k)});
  Batch batch = data::pack_sequences(sequences, multiple_of);
  const Tensor words = at::full({batch.at("input_ids").numel()}, -1, at::kLong);
  data::CharacterRows characters;
  std::vector<int32_t> ids;
  int64_t row = 0;
  for (const Window& window : windows) {
    int64_t word = 0;
    for (size_t t = 0; t < window.encoding.size(); ++t, ++row) {
      ids.clear();
      if (window.encoding.special_tokens_mask[t] == 0) {
        words.data_ptr<int64_t>()[row] = word++;
        const auto [begin, end] = window.encoding.offsets[t];
        if (!known.empty())
          known.append_ids(text::slice_code_points(inputs[window.input].text, begin, end), ids);
      }
      const int32_t count[] = {static_cast<int32_t>(ids.size())};
      characters.add(ids, count);
    }
  }
  batch.tensors["words"] = words;
  if (!known.empty()) characters.add_to(batch);
  return batch;
}

}  // namespace

EntityFinder::EntityFinder(const std::filesystem::path& folder, const PipelineOptions& options,
                           const ModelRegistry& models)
    : served_(folder, Head::token_classification, options, models),
      characters_(served_.model->characters()),
      strategy_(options.aggregation_strategy) {
  find_entities({}, served_.model->labels(), strategy_);  // checks the strategy
}

std::vector<std::vector<TaggedToken>> EntityFinder::tag(std::span<const PipelineInput> inputs,
                                                        bool raw) const {
  at::NoGradGuard no_grad;
  const auto longest = static_cast<size_t>(served_.model->max_length());
  const size_t shared = longest / 4;
  std::vector<Window> windows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t begin = 0;
    for (text::Encoding& encoding : served_.tokenizer.encode_windows(
             inputs[i].text, {.special_tokens = true, .max_length = longest, .stride = shared})) {
      if (encoding.size() == 0) continue;  // a tokenizer without special tokens, on a text without words
      const auto tokens = static_cast<size_t>(std::ranges::count(encoding.special_tokens_mask, 0));
      windows.push_back({i, begin, std::move(encoding)});
      begin += tokens - std::min(tokens, shared);
    }
  }
  std::vector<std::vector<TaggedToken>> all(inputs.size());
  if (windows.empty()) return all;
  const Batch batch = pack(windows, inputs, characters_, served_.pad_to_multiple_of);
  const Tensor logits = served_.model->forward(batch, {}).to(at::kDouble);
  const Tensor best = best_tags(*served_.model, logits, batch).contiguous();
  const Tensor scores = (raw ? logits : tag_probabilities(*served_.model, logits, batch)).contiguous();
  const int64_t width = scores.size(1);
  const bool finite = at::isfinite(logits).all().item<bool>();
  std::vector<std::vector<size_t>> context(inputs.size());  // of the window that a token was taken from
  int64_t row = 0;
  for (const Window& window : windows) {
    const text::Encoding& encoding = window.encoding;
    if (!finite)
      served_.require_finite(logits.slice(0, row, row + static_cast<int64_t>(encoding.size())),
                             inputs[window.input].text);
    size_t token = window.begin;
    const size_t end =
        window.begin + static_cast<size_t>(std::ranges::count(encoding.special_tokens_mask, 0));
    for (size_t t = 0; t < encoding.size(); ++t, ++row) {
      if (encoding.special_tokens_mask[t] != 0) continue;
      auto& tokens = all[window.input];
      const size_t room = std::min(token - window.begin, end - 1 - token);
      const double* const values = scores.const_data_ptr<double>() + row * width;
      std::optional<size_t> tag;
      if (served_.model->crf()) tag = static_cast<size_t>(best.const_data_ptr<int64_t>()[row]);
      if (token < tokens.size()) {
        if (room > context[window.input][token]) {
          tokens[token].scores.assign(values, values + width);
          tokens[token].best = tag;
          context[window.input][token] = room;
        }
      } else {
        TaggedToken tagged;
        tagged.word = served_.tokenizer.token(encoding.ids[t]).value_or("?");
        tagged.index = static_cast<int64_t>(token) + 1;
        tagged.begin = encoding.offsets[t].begin;
        tagged.end = encoding.offsets[t].end;
        // As Hugging Face decides for WordPiece: the piece is longer than its text, by ##.
        const auto [from, to] = encoding.offsets[t];
        const std::string text = text::slice_code_points(inputs[window.input].text, from, to);
        tagged.continues_word = text::count_code_points(tagged.word) != text::count_code_points(text);
        if (tagged.word == "[UNK]" || tagged.word == "<unk>") {
          tagged.word = text;
          tagged.continues_word = false;
        }
        tagged.scores.assign(values, values + width);
        tagged.best = tag;
        tokens.push_back(std::move(tagged));
        context[window.input].push_back(room);
      }
      ++token;
    }
  }
  return all;
}

std::vector<nlohmann::ordered_json> EntityFinder::predict(std::span<const PipelineInput> inputs,
                                                          const std::string& output) const {
  if (output != "label" && output != "scores" && output != "logits")
    throw ConfigError("output: \"{}\" is not one of label, scores, logits", output);
  const auto tagged = tag(inputs, output == "logits");
  const auto& labels = served_.model->labels();
  std::vector<nlohmann::ordered_json> records;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& record = records.emplace_back(nlohmann::ordered_json{{"text", inputs[i].text}});
    if (output == "label") {
      record["entities"] = nlohmann::ordered_json::array();
      for (const Entity& entity : find_entities(tagged[i], labels, strategy_)) {
        const bool single = strategy_ == "none";
        nlohmann::ordered_json item = {{single ? "entity" : "entity_group", entity.type},
                                       {"score", entity.score}};
        if (single) item["index"] = entity.index;
        item["word"] = entity.word;
        item["start"] = entity.begin;
        item["end"] = entity.end;
        record["entities"].push_back(std::move(item));
      }
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
  }
  return records;
}

std::unique_ptr<Pipeline> make_entity_finder(const std::filesystem::path& folder,
                                             const PipelineOptions& options, const ModelRegistry& models) {
  return std::make_unique<EntityFinder>(folder, options, models);
}

}  // namespace stretto
