// Runs recipes like `stretto train`, which may name the optimizer, the schedule and the strategy of this
// folder.
#include <stretto/stretto.h>

void add_lion();           // lion.cpp
void add_halving();        // halving.cpp
void add_sharded_state();  // sharded_state.cpp

int main(int argc, char** argv) {
  add_lion();
  add_halving();
  add_sharded_state();
  return stretto::run_program(argc, argv, [](const stretto::Run& run) {
    stretto::check_recipe(run.recipe, stretto::Verb::train);  // run_program has not required data
    return stretto::make_task({run.recipe, run.mesh, run.device, stretto::bundled_models()})->train({});
  });
}
