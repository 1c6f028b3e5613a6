#include "stretto/programs/stretto_rank/run.h"
#include "stretto/programs/stretto_rank/verbs.h"
#include "stretto/tasks/task.h"
#include "stretto/trainer/records/summary.h"

namespace stretto::rank {

void run_recipe(const arguments::RecipeArguments& arguments, Verb verb) {
  run_rank("stretto", arguments, verb, [verb](const Run& run) {
    const auto task = make_task({run.recipe, run.mesh, run.device, bundled_models()});
    if (verb == Verb::test) {
      task->test();
      return true;
    }
    const FitResult result = task->train({});
    if (run.mesh.world().rank() == 0 && !result.stopped && !result.was_finished)
      trainer::write_summary(run.recipe, run.mesh, result);
    return !result.stopped;
  });
}

}  // namespace stretto::rank
