#include "stretto/config/recipe.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/config/task_kind.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/rule.h"
#include "stretto/track/registry.h"

// The declaration of every setting: key, member, help, range or choices. Defaults are the structs'. sections/
// has those of each section.
namespace stretto {

using settings::may_change_on_resume;
using settings::one_of;

namespace {

// A program may declare new sections, and its own sections model, tokenizer and data, which stretto then does
// not read.
void require_free_name(const std::string& key, const std::vector<settings::Field>& taken) {
  const bool is_programs = key == "model" || key == "tokenizer" || key == "data";
  const bool is_taken = std::ranges::find(taken, key, &settings::Field::key) != taken.end();
  if (is_programs || !is_taken) return;
  throw ConfigError(
      "this program declares the setting \"{}\", which is reserved by stretto; a program may declare model, tokenizer, data and new names",
      key);
}

}  // namespace

bool ProgramFields::operator==(const ProgramFields& other) const {
  return settings::to_yaml(list) == settings::to_yaml(other.list);
}

std::optional<std::filesystem::path> offload_folder(const Recipe& recipe) {
  const auto& folder = recipe.training.offload_optimizer;
  return folder == in_output_folder ? recipe.output : folder;
}

std::optional<std::filesystem::path> parameter_folder(const Recipe& recipe) {
  const auto& folder = recipe.training.offload_parameters;
  return folder == in_output_folder ? recipe.output : folder;
}

TrackerSetup tracker_setup(const Recipe& recipe) {
  const TrackConfig& track = recipe.track;
  return {recipe.output, track.logging_dir, track.experiment, track.run_name, track.tags};
}

void Recipe::fields(settings::Fields& field) {
  field("task", task, "the task", one_of(task_kinds().names()));
  field("model", model, "the model to start from");
  field("tokenizer", tokenizer, "the tokenizer");
  field("data", data, "data files and their columns");
  task_settings.fields(field, task);
  field("training", training, "duration, batch sizes, precision, device");
  field("optimizer", optimizer, "the optimizer and its hyperparameters");
  field("scheduler", scheduler, "the learning rate schedule");
  field("loss_scale", loss_scale,
        "factor of the loss with precision fp16, so that small gradients stay in its range");
  field("parameters", parameters, "settings of parameters by name: frozen, learning rate, weight decay");
  field("ema", ema, "exponential moving average of the weights");
  field("checkpoint", checkpoint, "which model is kept; when the run is saved for resuming",
        may_change_on_resume());
  field("evaluate", evaluate, "evaluation during training", may_change_on_resume());
  field("early_stopping", early_stopping, "when a run ends before its last step", may_change_on_resume());
  field("track", track, "progress and metrics", may_change_on_resume());
  field("output", output, "the run folder: logs, metrics, checkpoints, the trained model",
        may_change_on_resume());
  field(
      "resume", resume,
      "auto: from the newest checkpoint in the run folder, if there is one; true: as auto, but it is an error if there is none; false: it is an error if there is one; or the folder of a checkpoint",
      may_change_on_resume());
  for (const settings::Field& own : program.list) {
    require_free_name(own.key, field.list());
    field.put(own);
  }
}

}  // namespace stretto
