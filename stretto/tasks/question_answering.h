#pragma once

#include "stretto/tasks/task.h"

namespace stretto::tasks {

// The task "question-answering": fine-tunes a model that marks the answer to a question in its context, on
// files in SQuAD's layout or JSON Lines. Its test writes test_results.json (metrics/squad.h),
// predictions.json, nbest_predictions.json and, if questions may have no answer, null_odds.json, as run_qa
// does.
std::unique_ptr<Task> make_question_answering(const TaskContext& context);

}  // namespace stretto::tasks
