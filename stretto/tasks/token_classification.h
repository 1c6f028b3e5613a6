#pragma once

#include "stretto/tasks/task.h"

namespace stretto::tasks {

// The task "token-classification": fine-tunes a model with a token classification head, for example to find
// named entities, on CoNLL files or JSON Lines of words and tags. Its test writes, besides test_results.json
// (metrics/spans.h), predictions.txt in CoNLL form (word, gold tag if there is one, predicted tag) and
// predictions.jsonl.
std::unique_ptr<Task> make_token_classification(const TaskContext& context);

}  // namespace stretto::tasks
