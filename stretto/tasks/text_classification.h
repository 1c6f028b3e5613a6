#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stretto/tasks/task.h"

namespace stretto {

namespace data {
class LabelSet;
struct Table;
class TextDataset;
}  // namespace data
namespace text {
class Tokenizer;
}
class ClassificationResults;
struct ClassificationSettings;
enum class ProblemType;

// The task "text-classification": fine-tunes a model with a classification head on files with labelled texts.
class TextClassification : public Task {
 public:
  explicit TextClassification(const TaskContext& context);

  FitResult train(const std::vector<std::shared_ptr<Callback>>& callbacks = {}) override;
  void test() override;

 private:
  data::Table read(const std::filesystem::path& file, const data::LabelSet* labels,
                   bool require_labels) const;
  std::unique_ptr<data::TextDataset> tokenize(const data::Table& table,
                                              const text::Tokenizer& tokenizer) const;
  void compare_inputs(const text::Tokenizer& tokenizer, const TextModel& model,
                      std::initializer_list<std::pair<const char*, const data::Table*>> tables) const;
  ClassificationSettings settings(const std::vector<std::string>& labels) const;
  void write_predictions(const data::Table& table, const ClassificationResults& results) const;
  void show_most_wrong(const data::Table& table, const ClassificationResults& results) const;

  const Recipe& recipe_;
  const Mesh& mesh_;
  at::Device device_;
  const ModelRegistry& models_;
  ProblemType problem_;
};

std::unique_ptr<Task> make_text_classification(const TaskContext& context);

}  // namespace stretto
