#include "stretto/rank/run.h"
#include "stretto/rank/verbs.h"
#include "stretto/tasks/text_classification.h"

namespace stretto::rank {

void run_recipe(const command::RecipeArguments& arguments, Verb verb) {
  run_rank("stretto", arguments, verb, [verb](const Run& run) {
    TextClassification task(run.recipe, run.group, run.device);
    if (verb == Verb::train) return task.train();
    task.test();
    return true;
  });
}

}  // namespace stretto::rank
