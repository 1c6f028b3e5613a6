#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/settings/fields.h"
#include "stretto/settings/one_of.h"

namespace stretto {

struct TaskKind;  // config/task_kind.h

// Values of token_classification.long_sentences.
enum class LongSentences { window, cut, refuse };
constexpr auto names_of(LongSentences) {
  return std::to_array<std::string_view>({"window", "cut", "refuse"});
}

enum class TagConversion { keep, iob1, iob2, bio, iobes, bioes };
constexpr auto names_of(TagConversion) {
  return std::to_array<std::string_view>({"keep", "IOB1", "IOB2", "BIO", "IOBES", "BIOES"});
}

enum class LossAverage { words, sentences };
constexpr auto names_of(LossAverage) { return std::to_array<std::string_view>({"words", "sentences"}); }

enum class StateStorage { none, cpu, gpu };
constexpr auto names_of(StateStorage) { return std::to_array<std::string_view>({"none", "cpu", "gpu"}); }

// The section token_classification: words and their tags.
struct TokenClassificationConfig {
  settings::OneOf<LongSentences> long_sentences = LongSentences::window;
  int64_t stride = 32;
  bool label_all_tokens = false;
  settings::OneOf<TagConversion> tag_scheme = TagConversion::keep;
  std::vector<std::string> tag_names = {};
  std::vector<std::string> loss_weights = {};  // TAG=WEIGHT
  settings::OneOf<LossAverage> loss_average = LossAverage::words;
  int64_t context_size = 0;
  bool respect_document_boundaries = true;
  double context_dropout = 0;
  settings::OneOf<StateStorage> embeddings_storage_mode = StateStorage::none;

  void fields(settings::Fields& field);
  bool operator==(const TokenClassificationConfig&) const = default;
};

TaskKind token_classification_kind();

// The recipe's keys for the options of readers and datasets of words: data_names and the keys of this
// section.
OptionNames names_of_words();

}  // namespace stretto
