#pragma once

#include <functional>

#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"
#include "stretto/trainer/trainer.h"

namespace stretto {

// What a rank's part of a run is given: all that a Trainer needs but the Module and its data.
struct Run {
  const Recipe& recipe;
  Group& group;
  at::Device device;
};

// The main() of a program that trains a Module of its own:
//
//   int main(int argc, char** argv) {
//     return stretto::run_program(argc, argv, [](const stretto::Run& run) {
//       MyModule module;
//       return stretto::Trainer(run.recipe, run.group, run.device).fit(module, MyData("train"), nullptr);
//     });
//   }
//
// The program takes the command line of `stretto train` (RECIPE, -N, --set, --strategy, ...) and does what that does: it
// checks the recipe, starts itself once a rank, or is a rank under torchrun and `stretto launch`; it keeps logs,
// config.yaml and summary.json in the recipe's output folder. `train` runs once on every rank. Of the recipe, the
// sections model, tokenizer and data are the program's to read or to leave: none of their settings is required. Returns
// the exit code; what is thrown is said on stderr. REQUIRES: called on the main thread, before any other was started.
int run_program(int argc, char** argv, const std::function<FitResult(const Run&)>& train);

}  // namespace stretto
