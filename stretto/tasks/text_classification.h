#pragma once

#include <memory>

#include "stretto/comm/group.h"
#include "stretto/data/text_dataset.h"
#include "stretto/tasks/sequence_classification.h"
#include "stretto/trainer/trainer.h"

namespace stretto {

// The task "text-classification" as a recipe describes it: from files to a trained model folder, and from a model folder
// to scores. Every rank runs it with the same recipe.
class TextClassification {
 public:
  TextClassification(const Recipe& recipe, Group& group, at::Device device);

  // Trains; leaves <output>/model, dev_results.json, summary.json, and rank 0 prints a closing summary; false, without
  // these, where a signal stopped it and the run folder's newest checkpoint holds the state.
  bool train(const std::vector<std::shared_ptr<Callback>>& callbacks = {});

  // Scores data.test with <output>/model; leaves predictions.jsonl and, where the file has labels, test_results.json.
  void test();

 private:
  text::Tokenizer load_tokenizer(const std::filesystem::path& folder) const;
  data::Table read(const std::filesystem::path& file, const data::LabelSet* labels,
                   bool require_labels) const;
  std::unique_ptr<data::TextDataset> tokenize(const data::Table& table,
                                              const text::Tokenizer& tokenizer) const;
  void compare_inputs(const text::Tokenizer& tokenizer, const BertConfig& model,
                      std::initializer_list<std::pair<const char*, const data::Table*>> tables) const;
  void write_predictions(const data::Table& table, const BertConfig& config, const Tensor& rows) const;

  const Recipe& recipe_;
  Group& group_;
  at::Device device_;
};

}  // namespace stretto
