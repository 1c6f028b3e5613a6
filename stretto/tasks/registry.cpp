#include "stretto/tasks/question_answering.h"
#include "stretto/tasks/task.h"
#include "stretto/tasks/text_classification.h"
#include "stretto/tasks/token_classification.h"

namespace stretto {

const TaskRegistry& bundled_tasks() {
  static const TaskRegistry tasks("a task", {
                                                {"text-classification", make_text_classification},
                                                {"token-classification", make_token_classification},
                                                {"question-answering", make_question_answering},
                                            });
  return tasks;
}

std::unique_ptr<Task> make_task(const TaskRegistry& tasks, const TaskContext& context) {
  const Recipe& recipe = context.recipe;
  return tasks.at(recipe.task, recipe.origins.label("task")).make(context);
}

}  // namespace stretto
