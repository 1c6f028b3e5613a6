#include "stretto/tasks/causal_lm.h"
#include "stretto/tasks/question_answering.h"
#include "stretto/tasks/task.h"
#include "stretto/tasks/text_classification.h"
#include "stretto/tasks/token_classification.h"

namespace stretto {
namespace {

// The constructor of a bundled kind (config/tasks).
struct BundledTask {
  std::string name;
  std::unique_ptr<Task> (*make)(const TaskContext&);
};

const Registry<BundledTask>& bundled_tasks() {
  static const Registry<BundledTask> tasks("a task",
                                           {
                                               {"text-classification", tasks::make_text_classification},
                                               {"token-classification", tasks::make_token_classification},
                                               {"question-answering", tasks::make_question_answering},
                                               {"causal-lm", tasks::make_causal_lm},
                                           });
  return tasks;
}

}  // namespace

std::unique_ptr<Task> make_task(const TaskContext& context) {
  const TaskKind& kind = task_kind(context.recipe);
  return kind.make ? kind.make(context) : bundled_tasks().at(kind.name, "task").make(context);
}

}  // namespace stretto
