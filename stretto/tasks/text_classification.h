#pragma once

#include <memory>

#include "stretto/data/text_dataset.h"
#include "stretto/tasks/sequence_classification.h"
#include "stretto/tasks/task.h"

namespace stretto {

// The task "text-classification": fine-tunes a model with a classification head on files with labelled texts.
class TextClassification : public Task {
 public:
  explicit TextClassification(const TaskContext& context)
      : recipe_(context.recipe),
        group_(context.group),
        device_(context.device),
        models_(context.models),
        problem_(
            parse_problem_type(recipe_.text_classification.problem(), "text_classification.problem_type")) {}

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
  Group& group_;
  at::Device device_;
  const ModelRegistry& models_;
  ProblemType problem_;
};

std::unique_ptr<Task> make_text_classification(const TaskContext& context);

}  // namespace stretto
