#include "stretto/trainer/folder/run_checkpoint.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/config/model_json.h"
#include "stretto/config/requested_checkpoint.h"

namespace stretto::trainer {
namespace {

// The checkpoint that `resume` selects.
std::optional<checkpoint_format::Checkpoint> choose(const Recipe& recipe) {
  require_requested_checkpoint(recipe);
  const std::filesystem::path folder = checkpoints_of(recipe);
  const auto mode = recipe.resume_mode();
  if (mode == ResumeMode::none) return std::nullopt;
  if (mode) return checkpoint_format::newest_good(folder);
  checkpoint_format::verify(recipe.resume);
  const int64_t step = checkpoint_format::read_manifest(recipe.resume).step;
  const auto there = checkpoint_format::list_checkpoints(folder);
  if (!there.empty() && there.back().step > step) {  // a later `auto` would resume from those
    throw ConfigError(
        "{}: {} holds checkpoints of later steps, up to {}; choose another output, or remove them with `stretto checkpoints rm`",
        recipe.origins.label("resume"), folder.string(), there.back().step);
  }
  return checkpoint_format::Checkpoint{step, recipe.resume};
}

// The value of a setting as text, or "unset".
std::string show(const nlohmann::json& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() || found->is_null() ? "unset" : found->dump();
}

// A line for the setting or, of a section such as model.config, for each of its keys that differ.
std::string describe_difference(const std::string& name, const std::string& label,
                                const nlohmann::json& before, const nlohmann::json& now) {
  const auto section = [&](const nlohmann::json& settings) {
    const auto found = settings.find(name);
    return found != settings.end() && found->is_object() ? *found : nlohmann::json();
  };
  const nlohmann::json then_keys = section(before), keys = section(now);
  if (then_keys.is_null() || keys.is_null())
    return fmt::format("\n  {}: {} in the checkpoint, now {}", label, show(before, name), show(now, name));
  nlohmann::json all = then_keys;
  all.update(keys);
  std::string lines;
  for (const auto& [key, value] : all.items()) {
    if (show(then_keys, key) != show(keys, key))
      lines += describe_difference(key, label + "." + key, then_keys, keys);
  }
  return lines;
}

// Whether model.config describes the model of the checkpoint, by another file or as a section.
bool has_same_model(const Recipe& recipe, const checkpoint_format::Manifest& manifest) {
  const auto model = manifest.scalars.find("model");
  if (!recipe.model.config || model == manifest.scalars.end() || model->empty()) return false;
  nlohmann::json now = read_model_json(recipe.model).json, then = *model;
  for (const char* origin : {"_name_or_path", "transformers_version", "architectures"}) {
    now.erase(origin);
    then.erase(origin);
  }
  return now == then;
}

void require_same_settings(const Recipe& recipe, const checkpoint_format::Manifest& manifest,
                           const std::filesystem::path& checkpoint) {
  for (const char* name : {"recipe", "place", "data", "optimizer"}) {
    if (manifest.scalars.contains(name)) continue;
    throw DataError(
        "{} has no scalar \"{}\": it is not a Trainer checkpoint (use Lite::load() for those of Lite programs), or was edited",
        checkpoint.string(), name);
  }
  const nlohmann::json before = manifest.scalars.at("recipe");
  const nlohmann::json now = computing_settings(recipe);
  // The defaults apply to settings that are newer than the checkpoint.
  const nlohmann::json defaults = computing_settings(Recipe());
  const auto& accepted = recipe.checkpoint.accept_changes;
  std::set<std::string> names;
  for (const auto* settings : {&before, &now}) {
    for (const auto& [name, value] : settings->items()) names.insert(name);
  }
  std::string differences;
  std::vector<std::string> differing;
  for (const std::string& name : names) {
    const nlohmann::json& earlier = before.contains(name) ? before : defaults;
    const std::string then = show(earlier, name), here = show(now, name);
    // Older checkpoints store some settings as whole numbers, which now have other types.
    const bool same =
        then == here || (earlier.contains(name) && now.contains(name) && earlier[name] == now[name]);
    if (same || may_change_on_resume(name)) continue;
    if (name == "model.config" && has_same_model(recipe, manifest)) continue;
    if (std::ranges::find(accepted, name) != accepted.end()) {
      log::info("{} changed from {} to {}", name, then, here);
      continue;
    }
    differing.push_back(name);
    differences += describe_difference(name, name, earlier, now);
  }
  if (differing.empty()) return;
  const bool is_other_model = std::ranges::find(differing, "model.config") != differing.end();
  throw ConfigError(
      "{} was saved by a run with other settings:{}\nRestore them, choose another output, or accept the change{} with --set 'checkpoint.accept_changes=[{}]'",
      checkpoint.string(), differences, is_other_model ? ", if tensors keep their shapes," : "",
      fmt::join(differing, ", "));
}

// Compares the optimizers of manual optimization before their tensors, whose names would not tell what
// differs. Older checkpoints lack them.
void require_same_optimizers(const State& state, const checkpoint_format::Manifest& manifest,
                             const std::filesystem::path& checkpoint) {
  const auto manual = state.scalars.find("manual");
  const auto saved = manifest.scalars.find("manual");
  if (manual == state.scalars.end() || saved == manifest.scalars.end() || !saved->contains("optimizers"))
    return;
  const auto differences = [&](const char* name) {
    if (saved->at(name) == manual->second.at(name)) return std::string();
    return describe_difference(name, name, *saved, manual->second);
  };
  if (const std::string lines = differences("optimizers"); !lines.empty()) {
    throw ConfigError(
        "{} was saved by a run whose configure_optimizers returned other optimizers:{}\nRestore them, or choose another output",
        checkpoint.string(), lines);
  }
  if (const std::string lines = differences("rates"); !lines.empty())
    log::warning("configure_optimizers returned other rates than in the run that is resumed:{}", lines);
}

// Whether the checkpoint is one of this recipe's run.
bool is_of_run(const Recipe& recipe, const std::filesystem::path& checkpoint) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(checkpoint, failed);  // without links and a slash at its end
  return std::filesystem::equivalent(real.parent_path(), checkpoints_of(recipe), failed);
}

// Opens the checkpoint that `find` returns on rank 0.
std::unique_ptr<RunCheckpoint> open_checkpoint(
    const Recipe& recipe, const Mesh& mesh,
    const std::function<std::optional<checkpoint_format::Checkpoint>()>& find) {
  const auto chosen = checkpoint::choose(mesh.world(), find);
  return chosen ? std::make_unique<RunCheckpoint>(recipe, mesh, *chosen) : nullptr;
}

}  // namespace

std::unique_ptr<RunCheckpoint> find_checkpoint(const Recipe& recipe, const Mesh& mesh) {
  return open_checkpoint(recipe, mesh, [&] { return choose(recipe); });
}

std::unique_ptr<RunCheckpoint> newest_checkpoint(const Recipe& recipe, const Mesh& mesh) {
  return open_checkpoint(recipe, mesh,
                         [&] { return checkpoint_format::newest_good(checkpoints_of(recipe)); });
}

RunCheckpoint::RunCheckpoint(const Recipe& recipe, const Mesh& mesh, const std::filesystem::path& checkpoint)
    : mesh_(mesh),
      path_(checkpoint),
      continues_folder_(!mesh.world().broadcast_bytes(is_of_run(recipe, checkpoint) ? "yes" : "", 0).empty()),
      source_(mesh.world(), checkpoint, checkpoints_of(recipe), recipe.checkpoint.wait_for_folder(),
              {{"precision", "training.precision"}}) {
  require_same_settings(recipe, source_.manifest(), checkpoint);
}

void RunCheckpoint::fill(State& state) {
  require_same_optimizers(state, source_.manifest(), path_);
  const std::map<std::string, nlohmann::json> own = state.scalars;
  source_.fill(state);
  const checkpoint_format::Manifest& manifest = source_.manifest();
  if (!manifest.scalars.contains("products")) state.scalars.erase("products");  // of an earlier version
  if (!continues_folder_) {
    for (const char* name : {"best", "saved_models"}) state.scalars[name] = own.at(name);
  }
  log::info("resumed    after step {}, from {}{}", manifest.step, path_.string(),
            manifest.world_size == mesh_.world().size()
                ? ""
                : fmt::format(" (written by {})", counted(manifest.world_size, "rank")));
}

}  // namespace stretto::trainer
