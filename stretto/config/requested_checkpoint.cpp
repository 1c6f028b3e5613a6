#include "stretto/config/requested_checkpoint.h"

#include "stretto/base/error.h"
#include "stretto/checkpoint_format/folder.h"

namespace stretto {
namespace {

void require_checkpoint_folder(const Recipe& recipe) {
  const std::filesystem::path requested = recipe.resume;
  const std::string place = recipe.origins.label("resume");
  if (!std::filesystem::exists(requested)) {
    throw ConfigError("{}: {} does not exist; expected auto, true, false or the folder of a checkpoint",
                      place, recipe.resume);
  }
  if (std::filesystem::exists(requested / checkpoint_format::manifest_name)) return;
  const auto inside = checkpoint_format::list_checkpoints(requested / "checkpoints");
  throw ConfigError("{}: {} is no checkpoint: it has no {}; {}", place, recipe.resume,
                    checkpoint_format::manifest_name,
                    inside.empty() ? "a folder checkpoints/step-<number> of a run is expected"
                                   : fmt::format("did you mean {}?", inside.back().path.string()));
}

}  // namespace

std::filesystem::path checkpoints_of(const Recipe& recipe) { return recipe.output / "checkpoints"; }

void require_requested_checkpoint(const Recipe& recipe) {
  const auto mode = recipe.resume_mode();
  if (!mode) return require_checkpoint_folder(recipe);
  if (mode == ResumeMode::automatic) return;
  const std::filesystem::path folder = checkpoints_of(recipe);
  const auto found = checkpoint_format::list_checkpoints(folder);
  if (mode == ResumeMode::required && found.empty()) {
    throw ConfigError(
        "{}: there is no checkpoint in {} to resume from; use resume: auto to start from the beginning in that case",
        recipe.origins.label("resume"), folder.string());
  }
  if (mode == ResumeMode::none && !found.empty()) {
    throw ConfigError(
        "{}: {} holds checkpoints of an earlier run, up to step {}; resume it (resume: auto), choose another output, or remove them with `stretto checkpoints rm {} --all`",
        recipe.origins.label("resume"), folder.string(), found.back().step, folder.string());
  }
}

}  // namespace stretto
