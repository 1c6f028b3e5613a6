#include "stretto/serve/entity_finder.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/data/character_rows.h"
#include "stretto/data/packing.h"
#include "stretto/data/word_rows.h"
#include "stretto/models/tagging.h"
#include "stretto/nn/crf.h"
#include "stretto/text/characters.h"
#include "stretto/text/copy_tokenizer.h"
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

struct Packed {
  Batch batch;
  std::vector<int64_t>
      first;  // of each token's row: the row that has its tag, that of its word's first token
};

// Where the word of token t ends: the token behind its last one.
size_t end_of_word(const text::Encoding& encoding, size_t t, bool whole_words) {
  size_t end = t + 1;
  if (!whole_words) return end;
  while (end < encoding.size() && encoding.special_tokens_mask[end] == 0 &&
         encoding.word_ids[end] == encoding.word_ids[t])
    ++end;
  return end;
}

// The windows as one batch, with all that models of any kind read. A word is a token, or with `whole_words` as the tokenizer splits
// texts; `words`: the tokenizer of its id, or null.
Packed pack(const std::vector<Window>& windows, std::span<const PipelineInput> inputs,
            const text::Characters& known, bool whole_words, const text::Tokenizer* words_tokenizer,
            int64_t multiple_of) {
  std::vector<data::TokenSequence> sequences;
  for (const Window& window : windows)
    sequences.push_back({window.encoding.ids, window.encoding.type_ids, std::ssize(sequences)});
  Batch batch = data::pack_sequences(sequences, multiple_of);
  const Tensor words = at::full({batch.at("input_ids").numel()}, -1, at::kLong);
  data::CharacterRows characters;
  data::WordRows word_rows;
  std::vector<int64_t> first;
  std::vector<int32_t> ids;
  for (const Window& window : windows) {
    const text::Encoding& encoding = window.encoding;
    int64_t word = 0;
    for (size_t t = 0; t < encoding.size();) {
      const bool is_word = encoding.special_tokens_mask[t] == 0;
      const size_t end = is_word ? end_of_word(encoding, t, whole_words) : t + 1;
      const auto row = std::ssize(first);
      ids.clear();
      int64_t id = 0;
      if (is_word) {
        words.data_ptr<int64_t>()[row] = word++;
        const std::string text = text::slice_code_points(inputs[window.input].text, encoding.offsets[t].begin,
                                                         encoding.offsets[end - 1].end);
        if (!known.empty()) known.append_ids(text, ids);
        if (words_tokenizer != nullptr) {
          const auto found = words_tokenizer->encode(std::vector<std::string>{text}).ids;
          if (!found.empty()) id = found.front();
        }
      }
      for (size_t k = t; k < end; ++k) {
        const int32_t count[] = {k == t ? static_cast<int32_t>(ids.size()) : 0};
        characters.add(k == t ? std::span<const int32_t>(ids) : std::span<const int32_t>(), count);
        word_rows.add(is_word, k == t, id);
        first.push_back(row);
      }
      t = end;
    }
  }
  batch.tensors["words"] = words;
  if (!known.empty()) characters.add_to(batch);
  if (whole_words) word_rows.add_to(batch);
  return {std::move(batch), std::move(first)};
}

// Joins the tokens of each word: `inside` says which continue the word of the token before.
std::vector<TaggedToken> whole_words_of(std::vector<TaggedToken> tokens, const std::vector<bool>& inside,
                                        const std::string& text) {
  std::vector<TaggedToken> words;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!inside[i] || words.empty()) {
      words.push_back(std::move(tokens[i]));
    } else {
      words.back().end = tokens[i].end;
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    words[i].index = static_cast<int64_t>(i) + 1;
    words[i].word = text::slice_code_points(text, words[i].begin, words[i].end);
    words[i].continues_word = false;
  }
  return words;
}

}  // namespace

EntityFinder::EntityFinder(const std::filesystem::path& folder, const PipelineOptions& options,
                           const ModelRegistry& models)
    : served_(folder, Head::token_classification, options, models),
      characters_(served_.model->characters()),
      strategy_(options.aggregation_strategy.value_or("simple")) {
  find_entities({}, served_.model->labels(), strategy_);  // checks the strategy
  if (served_.model->whole_words().word_ids) words_ = text::Tokenizer::load(folder / text::words_folder);
}

// Byte-level BPE reads words with a space in front, as in training, also where the folder says that texts have none.
const text::Tokenizer& EntityFinder::tokenizer_of_words() const {
  std::call_once(split_loaded_,
                 [&] { split_.emplace(text::Tokenizer::load(served_.folder, {.add_prefix_space = true})); });
  return *split_;
}

// With offsets in the text, also those of words.
std::vector<text::Encoding> EntityFinder::windows(const PipelineInput& input) const {
  const auto longest = static_cast<size_t>(served_.model->max_length());
  const text::EncodeOptions options{.special_tokens = true, .max_length = longest, .stride = longest / 4};
  if (!input.words) return served_.tokenizer.encode_windows(input.text, options);
  auto encodings = tokenizer_of_words().encode_windows(*input.words, options);
  std::vector<uint32_t> starts;
  uint32_t start = 0;
  for (const std::string& word : *input.words) {
    starts.push_back(start);
    start += static_cast<uint32_t>(text::count_code_points(word)) + 1;
  }
  for (text::Encoding& encoding : encodings) {
    for (size_t t = 0; t < encoding.size(); ++t) {
      if (encoding.word_ids[t] < 0) continue;
      encoding.offsets[t].begin += starts[static_cast<size_t>(encoding.word_ids[t])];
      encoding.offsets[t].end += starts[static_cast<size_t>(encoding.word_ids[t])];
    }
  }
  return encodings;
}

std::vector<std::vector<TaggedToken>> EntityFinder::tag(std::span<const PipelineInput> inputs,
                                                        bool raw) const {
  at::NoGradGuard no_grad;
  const auto shared = static_cast<size_t>(served_.model->max_length()) / 4;
  std::vector<Window> windows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t begin = 0;
    for (text::Encoding& encoding : this->windows(inputs[i])) {
      if (encoding.size() == 0) continue;  // a tokenizer without special tokens, on a text without words
      const auto tokens = static_cast<size_t>(std::ranges::count(encoding.special_tokens_mask, 0));
      windows.push_back({i, begin, std::move(encoding)});
      begin += tokens - std::min(tokens, shared);
    }
  }
  std::vector<std::vector<TaggedToken>> all(inputs.size());
  if (windows.empty()) return all;
  const Packed packed = pack(windows, inputs, characters_, served_.model->whole_words().any,
                             words_ ? &*words_ : nullptr, served_.pad_to_multiple_of);
  const Batch& batch = packed.batch;
  const Tensor logits = served_.model->forward(batch, {}).to(at::kDouble);
  const Tensor best = best_tags(*served_.model, logits, batch).contiguous();
  const Tensor scores = (raw ? logits : tag_probabilities(*served_.model, logits, batch)).contiguous();
  const int64_t width = scores.size(1);
  const bool finite = at::isfinite(logits).all().item<bool>();
  std::vector<std::vector<size_t>> context(inputs.size());  // of the window that a token was taken from
  std::vector<std::vector<bool>> inside(inputs.size());     // whether a token continues a word
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
      const int64_t tagged_row = packed.first[static_cast<size_t>(row)];
      const double* const values = scores.const_data_ptr<double>() + tagged_row * width;
      std::optional<size_t> tag;
      if (served_.model->crf()) tag = static_cast<size_t>(best.const_data_ptr<int64_t>()[tagged_row]);
      if (token < tokens.size()) {
        if (room > context[window.input][token]) {
          tokens[token].scores.assign(values, values + width);
          tokens[token].best = tag;
          context[window.input][token] = room;
          inside[window.input][token] = tagged_row != row;
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
        inside[window.input].push_back(tagged_row != row);
      }
      ++token;
    }
  }
  if (!served_.model->whole_words().any) return all;
  for (size_t i = 0; i < inputs.size(); ++i)
    all[i] = whole_words_of(std::move(all[i]), inside[i], inputs[i].text);
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

std::unique_ptr<Pipeline> make_entity_finder(const std::filesystem::path& folder,
                                             const PipelineOptions& options, const ModelRegistry& models) {
  return std::make_unique<EntityFinder>(folder, options, models);
}

}  // namespace stretto
