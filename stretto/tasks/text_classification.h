#pragma once

#include "stretto/tasks/task.h"

namespace stretto::tasks {

// The task "text-classification": fine-tunes a model with a classification head on files with labelled texts.
// Its test writes test_results.json, predictions.jsonl and, if the file has labels, most_wrong.jsonl.
std::unique_ptr<Task> make_text_classification(const TaskContext& context);

}  // namespace stretto::tasks
