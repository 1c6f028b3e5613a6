#include "stretto/tasks/task.h"
#include "stretto/tasks/text_classification.h"

namespace stretto {

const TaskRegistry& bundled_tasks() {
  static const TaskRegistry tasks("a task", {
                                                {"text-classification", make_text_classification},
                                            });
  return tasks;
}

std::unique_ptr<Task> make_task(const TaskRegistry& tasks, const TaskContext& context) {
  const Recipe& recipe = context.recipe;
  return tasks.at(recipe.task, recipe.origins.label("task")).make(context);
}

}  // namespace stretto
