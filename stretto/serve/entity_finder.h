#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/data/features/words.h"
#include "stretto/serve/served_model.h"

namespace stretto::serve {

// A token of a text, or a word if the model tags whole words, with the model's probabilities of its tags.
struct TaggedToken {
  std::string word;            // as in the vocabulary
  int64_t index = 0;           // among the tokens of the text, from 1, as Hugging Face counts after [CLS]
  int64_t begin = 0, end = 0;  // code points of the text
  bool continues_word = false;
  std::vector<double> scores;
  // the tag in the best sequence of tags; unset: the tag with the highest score
  std::optional<size_t> best = {};
};

struct Entity {
  std::string type;  // with its prefix (B-PER) if tokens are not aggregated
  double score = 0;
  int64_t index = 0;  // of the token, if tokens are not aggregated; else 0
  std::string word;
  int64_t begin = 0, end = 0;
};

// Finds the entities of a text by Hugging Face's aggregation strategies (TokenClassificationPipeline):
//   none     each token that is not O is an entity
//   simple   joins consecutive tokens of the same type; B-, S- and U- begin another entity, E- and L-
//   continue it first    joins words, each with the tag of its first token average  joins words, each with
//   the best tag of the mean of its tokens' probabilities max      joins words, each with the tag of its most
//   certain token
// Throws ConfigError for another strategy.
std::vector<Entity> find_entities(std::span<const TaggedToken> tokens, const std::vector<std::string>& labels,
                                  const std::string& strategy);

// Finds entities in texts with a model folder. Texts longer than the model's positions are split into
// overlapping windows.
class EntityFinder : public Pipeline {
 public:
  // Throws DataError if weights are missing in the folder or not finite, ConfigError for an unknown
  // aggregation strategy.
  EntityFinder(const std::filesystem::path& folder, const PipelineOptions& options,
               const ModelRegistry& models = bundled_models());

  // Returns the tokens of each text with their scores, which are raw if `logits`.
  std::vector<std::vector<TaggedToken>> tag(std::span<const PipelineInput> inputs, bool logits = false) const;

  // `output`: label or pipeline (entities); scores or logits (those of each token).
  std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                              const std::string& output) const override;

  InputKind input_kind() const override { return InputKind::text_or_words; }

 private:
  struct Sample;

  Sample sample_of(const PipelineInput& input) const;
  std::vector<data::WordFeatures> features_of(const Sample& sample, const PipelineInput& input,
                                              size_t stride) const;
  Batch batch_of(std::span<const Sample> samples) const;
  TaggedToken token_of(const Sample& sample, const text::Encoding& window, size_t t,
                       const std::string& text) const;
  const text::Tokenizer& tokenizer_of_words() const;

  ServedModel served_;
  // the tokenizer of inputs that are lists of words; loaded with the first such input
  mutable std::optional<text::Tokenizer> split_;
  mutable std::once_flag split_loaded_;
  // the tokenizer of word vectors, if the model has those besides tokens
  std::optional<text::Tokenizer> words_;
  data::WordInputs inputs_;
  std::optional<int32_t> separator_;  // a token around each sentence
  const SequenceLabeller& labeller_;
  bool has_own_labeller_;
  std::string strategy_;
};

PipelineType token_classification_pipeline();  // for the registry

}  // namespace stretto::serve
