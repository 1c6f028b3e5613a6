#pragma once

#include <functional>
#include <vector>

#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/settings/fields.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto {

// The context of one rank of a run: the arguments of a Trainer besides the Module and its data.
struct Run {
  const Recipe& recipe;
  const Mesh& mesh;
  at::Device device;
};

// Implements main() of a program that trains its own Module:
//
//   struct ModelSettings {
//     int64_t hidden = 32;
//     void fields(stretto::settings::Fields& field) {
//       field("hidden", hidden, "width of the hidden layers", stretto::settings::at_least(1));
//     }
//   };
//   struct Settings {
//     ModelSettings model;
//     void fields(stretto::settings::Fields& field) { field("model", model, "the network"); }
//   };
//
//   int main(int argc, char** argv) {
//     Settings settings;
//     return stretto::run_program(argc, argv, settings, [&](const stretto::Run& run) {
//       MyModule module(settings.model.hidden);
//       return stretto::Trainer(run.recipe, run.mesh, run.device).fit(module, MyData("train"), nullptr);
//     });
//   }
//
// The program accepts the command line of `stretto train` (RECIPE, -N, KEY=VALUE, --strategy, ...) and
// behaves like it: it checks the recipe and starts itself once per rank, or runs as a rank under torchrun and
// `stretto launch`; it writes logs, config.yaml and summary.json to the recipe's output folder. `train` runs
// once on every rank.
//
// Settings: the fields that `settings` declares are part of the recipe. They are read, range-checked,
// overridden by --set, printed by --help, compared between ranks and on resume, and written to config.yaml
// like stretto's own; their values are in `settings` when `train` is called. A section model, tokenizer or
// data replaces stretto's section of that name; without one, stretto's settings of these sections are
// accepted and none is required. Other names used by stretto cannot be declared.
//
// Returns the exit code; exceptions are reported on stderr. REQUIRES: called on the main thread, before any
// other thread is started; `settings` outlives the call.
template <class Settings>
int run_program(int argc, char** argv, Settings& settings, const std::function<FitResult(const Run&)>& train);
int run_program(int argc, char** argv, const std::function<FitResult(const Run&)>& train);

// Like above, with the fields of the settings (settings::fields_of).
int run_program(int argc, char** argv, std::vector<settings::Field> settings,
                const std::function<FitResult(const Run&)>& train);

template <class Settings>
int run_program(int argc, char** argv, Settings& settings,
                const std::function<FitResult(const Run&)>& train) {
  return run_program(argc, argv, settings::fields_of(settings), train);
}

}  // namespace stretto
