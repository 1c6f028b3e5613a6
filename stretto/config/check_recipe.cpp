#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/checks/checks.h"
#include "stretto/config/evaluation.h"
#include "stretto/config/task_kind.h"
#include "stretto/optim_config/optimizer_registry.h"
#include "stretto/track/registry.h"

namespace stretto {
namespace {

void check_rows(const Recipe& recipe) {
  const MeshConfig& mesh = recipe.training.mesh;
  if (!mesh.sequence_parallel || mesh.tp > 1) return;
  throw ConfigError(
      "{}: rows are divided among the ranks of each layer, and {} is 1; set it to 2 or more, or remove this",
      recipe.origins.label("training.mesh.sequence_parallel"), recipe.origins.mention("training.mesh.tp"));
}

void check_mesh(const Recipe& recipe) {
  if (recipe.training.mesh.tp == 1 || task_kind(recipe).divides_models) return;
  throw ConfigError(
      "{}: {} is {}, whose models cannot be divided among ranks, unlike those of {}; remove this",
      recipe.origins.label("training.mesh.tp"), recipe.origins.mention("task"), recipe.task,
      tasks_with(&TaskKind::divides_models));
}

void check_checkpoint(const Recipe& recipe) {
  const TrainingConfig& training = recipe.training;
  for (const auto& [name, rolls_back] :
       {std::pair("training.on_nonfinite", training.on_nonfinite == OnNonfinite::rollback),
        {"training.on_spike", training.on_spike == OnSpike::rollback}}) {
    if (!rolls_back || !recipe.checkpoint.every.never()) continue;
    throw ConfigError("{}: rollback requires checkpoints; set checkpoint.every", recipe.origins.label(name));
  }
  const nlohmann::json compared = computing_settings(recipe);
  std::vector<std::string> names = {"data.validation"};  // settings of files whose contents are compared
  for (const auto& [name, value] : compared.items()) names.push_back(name);
  for (const std::string& name : recipe.checkpoint.accept_changes) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw ConfigError("{}: {} is not among the settings that are compared when a run is resumed{}",
                      recipe.origins.label("checkpoint.accept_changes"), name, did_you_mean(name, names));
  }
}

void check_track(const Recipe& recipe) {
  const TrackerSetup setup = tracker_setup(recipe);
  const auto uses = [&](const char* name) {
    return std::ranges::find(recipe.track.trackers, name) != recipe.track.trackers.end();
  };
  if (setup.has_url() && !uses("mlflow")) {
    throw ConfigError(
        "{}: {} is the URL of a server, but track.trackers has no mlflow; add it, or set a folder",
        recipe.origins.label("track.logging_dir"), *setup.logging_dir);
  }
  if (setup.name_of_run().empty() || setup.name_of_run().find('/') != std::string::npos) {
    throw ConfigError("{}: \"{}\" is not a name; expected one without \"/\"",
                      recipe.origins.label("track.run_name"), setup.name_of_run());
  }
  const Interval& histograms = recipe.track.histograms;
  if (histograms.unit() == Interval::Unit::seconds || histograms.unit() == Interval::Unit::evaluations) {
    throw ConfigError("{}: {} is not an interval of steps (500) or epochs (2ep)",
                      recipe.origins.label("track.histograms"), histograms.text());
  }
  if (!histograms.never() && !uses("tensorboard")) {
    throw ConfigError("{}: only tensorboard shows histograms; add it to track.trackers, or remove this",
                      recipe.origins.label("track.histograms"));
  }
  for (const std::string& tag : recipe.track.tags) {
    if (tag.find('=') == std::string::npos || tag.front() == '=')
      throw ConfigError("{}: \"{}\" is not KEY=VALUE", recipe.origins.label("track.tags"), tag);
  }
  for (const std::string& name : recipe.track.trackers) {
    const TrackerKind& kind = find_tracker(name);
    try {
      if (kind.check) kind.check(setup);
    } catch (const ConfigError& error) {
      throw ConfigError("{}: {}", recipe.origins.label("track.trackers"), error.what());
    }
  }
}

}  // namespace

void check_recipe(const Recipe& recipe, Verb verb) {
  check_output(recipe);
  const TaskKind& task = task_kind(recipe);
  if (task.check) task.check(recipe);
  // A program of one's own may make another optimizer than the recipe's.
  if (verb == Verb::train && optim::optimizers().at(recipe.optimizer.type, "optimizer.type").reevaluates)
    require_whole_gradients(recipe, recipe.optimizer.type);
  check_rows(recipe);
  if (verb != Verb::fit) check_mesh(recipe);
  if (verb == Verb::train && !task.head.empty()) {
    check_model(recipe);
    check_start(recipe);
  }
  if (verb == Verb::test) {
    require_path(recipe, "data.test", recipe.data.test, "by stretto test");
    check_trained_model(recipe);
    return;
  }
  if (verb == Verb::train) {
    check_data(recipe);
    require_evaluated_samples(recipe);
  }
  check_offload(recipe, "training.offload_optimizer", recipe.training.offload_optimizer,
                "the optimizer's state");
  check_offload(recipe, "training.offload_parameters", recipe.training.offload_parameters, "the parameters");
  check_evaluation(recipe);
  check_optimization(recipe);
  check_checkpoint(recipe);
  check_track(recipe);
}

}  // namespace stretto
