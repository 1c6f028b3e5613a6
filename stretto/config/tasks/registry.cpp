#include "stretto/config/task_kind.h"
#include "stretto/config/tasks/causal_lm.h"
#include "stretto/config/tasks/question_answering.h"
#include "stretto/config/tasks/text_classification.h"
#include "stretto/config/tasks/token_classification.h"

namespace stretto {

Registry<TaskKind>& task_kinds() {
  static Registry<TaskKind> kinds("a task", {
                                                text_classification_kind(),
                                                token_classification_kind(),
                                                question_answering_kind(),
                                                causal_lm_kind(),
                                            });
  return kinds;
}

}  // namespace stretto
