#include "stretto/trainer/folder/checkpoints.h"

#include <algorithm>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint/transfer.h"

namespace stretto {
namespace {

// The value of a setting as text, or "unset".
std::string show(const nlohmann::json& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() || found->is_null() ? "unset" : found->dump();
}

}  // namespace

Checkpoints::Checkpoints(const Recipe& recipe, const Mesh& mesh)
    : recipe_(recipe),
      mesh_(mesh),
      folder_(recipe.output / "checkpoints"),
      every_(recipe.checkpoint.every, mesh.world().rank() == 0) {}

std::optional<checkpoint_format::Checkpoint> Checkpoints::choose() const {
  const std::string& wish = recipe_.resume;
  const auto mode = recipe_.resume_mode();
  const std::string place = recipe_.origins.label("resume");
  if (mode == ResumeMode::automatic || mode == ResumeMode::required) {
    auto found = checkpoint_format::newest_good(folder_);
    if (!found && mode == ResumeMode::required) {
      throw ConfigError(
          "{}: there is no checkpoint in {} to resume from; use resume: auto to start from the beginning in that case",
          place, folder_.string());
    }
    return found;
  }
  if (mode == ResumeMode::none) {
    const auto there = checkpoint_format::list_checkpoints(folder_);
    if (there.empty()) return std::nullopt;
    throw ConfigError(
        "{}: {} holds checkpoints of an earlier run, up to step {}; resume it (resume: auto), choose another output, or remove them with `stretto checkpoints rm {} --all`",
        place, folder_.string(), there.back().step, folder_.string());
  }
  if (!std::filesystem::exists(wish)) {
    throw ConfigError("{}: {} does not exist; expected auto, true, false or the folder of a checkpoint",
                      place, wish);
  }
  if (!std::filesystem::exists(std::filesystem::path(wish) / checkpoint_format::manifest_name)) {
    const auto inside = checkpoint_format::list_checkpoints(std::filesystem::path(wish) / "checkpoints");
    throw ConfigError("{}: {} is no checkpoint: it has no {}; {}", place, wish,
                      checkpoint_format::manifest_name,
                      inside.empty() ? "a folder checkpoints/step-<number> of a run is expected"
                                     : fmt::format("did you mean {}?", inside.back().path.string()));
  }
  checkpoint_format::verify(wish);
  const int64_t step = checkpoint_format::read_manifest(wish).step;
  const auto there = checkpoint_format::list_checkpoints(folder_);
  if (!there.empty() && there.back().step > step) {  // a later `auto` would resume from those
    throw ConfigError(
        "{}: {} holds checkpoints of later steps, up to {}; choose another output, or remove them with `stretto checkpoints rm`",
        place, folder_.string(), there.back().step);
  }
  return checkpoint_format::Checkpoint{step, wish};
}

void Checkpoints::require_same_settings(const checkpoint_format::Manifest& manifest,
                                        const std::filesystem::path& checkpoint) const {
  for (const char* name : {"recipe", "place", "data", "optimizer"}) {
    if (manifest.scalars.contains(name)) continue;
    throw DataError(
        "{} has no scalar \"{}\": it is not a Trainer checkpoint (use Lite::load() for those of Lite programs), or was edited",
        checkpoint.string(), name);
  }
  const nlohmann::json before = manifest.scalars.at("recipe");
  const nlohmann::json now = computing_settings(recipe_);
  const nlohmann::json defaults =
      computing_settings(Recipe());  // of settings that are newer than the checkpoint
  const auto& accepted = recipe_.checkpoint.accept_changes;
  std::set<std::string> names;
  for (const auto* settings : {&before, &now}) {
    for (const auto& [name, value] : settings->items()) names.insert(name);
  }
  std::string differences;
  std::vector<std::string> differing;
  for (const std::string& name : names) {
    const nlohmann::json& earlier = before.contains(name) ? before : defaults;
    const std::string then = show(earlier, name), here = show(now, name);
    // A setting may be a whole number in older checkpoints, and another one since.
    const bool same =
        then == here || (earlier.contains(name) && now.contains(name) && earlier[name] == now[name]);
    if (same || may_change_on_resume(name)) continue;
    if (std::ranges::find(accepted, name) != accepted.end()) {
      log::info("{} changed from {} to {}", name, then, here);
      continue;
    }
    differing.push_back(name);
    differences += fmt::format("\n  {}: {} in the checkpoint, now {}", name, then, here);
  }
  if (differing.empty()) return;
  throw ConfigError(
      "{} was saved by a run with other settings:{}\nRestore them, choose another output, or accept the change with --set 'checkpoint.accept_changes=[{}]'",
      checkpoint.string(), differences, fmt::join(differing, ", "));
}

std::optional<State> Checkpoints::load(const Describe& describe) {
  const auto chosen = checkpoint::choose(mesh_.world(), [&] { return choose(); });
  if (!chosen) return std::nullopt;
  continues_ = !mesh_.world().broadcast_bytes(is_in_folder(*chosen) ? "yes" : "", 0).empty();
  holds_state_ = continues_;
  return load_from(*chosen, describe);
}

bool Checkpoints::is_in_folder(const std::filesystem::path& checkpoint) const {
  std::error_code failed;
  const auto real = std::filesystem::canonical(checkpoint, failed);  // without links and a slash at its end
  return std::filesystem::equivalent(real.parent_path(), folder_, failed);
}

State Checkpoints::roll_back(const Describe& describe, const std::string& reason) {
  if (writer_) writer_->finish();
  const auto chosen =
      checkpoint::choose(mesh_.world(), [&] { return checkpoint_format::newest_good(folder_); });
  if (!chosen) throw Error("{}; there is no checkpoint to roll back to yet", reason);
  log::warning("{}; rolling back to the last checkpoint, with the learning rate multiplied by {:g}", reason,
               recipe_.training.rollback_lr_factor);
  return load_from(*chosen, describe);
}

State Checkpoints::load_from(const std::filesystem::path& checkpoint, const Describe& describe) {
  const checkpoint::ReadableCheckpoint readable(mesh_.world(), checkpoint, folder_);
  const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(readable.path());
  require_same_settings(manifest, checkpoint);
  State state = describe(RandomState::writers(checkpoint::tensor_names(manifest)));
  checkpoint::load(mesh_.world(), readable.path(), state, {{"precision", "training.precision"}});
  if (!manifest.scalars.contains("products")) state.scalars.erase("products");  // of an earlier version
  log::info("resumed    after step {}, from {}{}", manifest.step, checkpoint.string(),
            manifest.world_size == mesh_.world().size()
                ? ""
                : fmt::format(" (written by {})", counted(manifest.world_size, "rank")));
  return state;
}

Requests Checkpoints::requests() const {
  Requests requests = signals_.take();
  requests.save |= every_.requested();
  return requests;
}

bool Checkpoints::due(const StepReport& report, std::optional<int64_t> evaluation, bool last,
                      bool stops) const {
  if (report.requests.save || report.requests.stop || stops) return true;
  // A checkpoint saved on request must not remain the newest one at the end of the run.
  if (last) return holds_state_ || !every_.every().never();
  return every_.due(report, /*requested=*/false, evaluation);
}

void Checkpoints::save(State state, const StepReport& report, bool last,
                       std::optional<checkpoint_format::Score> score) {
  if (!writer_) {
    const CheckpointConfig& config = recipe_.checkpoint;
    writer_ = std::make_unique<checkpoint::Writer>(
        mesh_.world(),
        checkpoint::WriterOptions{.folder = folder_,
                                  .background = config.async,
                                  .wait_when_busy = config.when_busy == WhenBusy::wait,
                                  .retention = {.last = config.keep_last,
                                                .best = config.keep_best,
                                                .every_steps = config.keep_every.value_or(0)},
                                  .snapshot_folder = recipe_.training.offload_optimizer.value_or("")});
  }
  holds_state_ = true;
  state.scalars["recipe"] = computing_settings(recipe_);
  state.scalars["place"]["epochs"] = report.epochs;
  if (last) writer_->finish();
  writer_->save(state, report.step, std::move(score));
  every_.restart();
}

std::string Checkpoints::finish() {
  const std::string error = writer_ ? writer_->finish() : "";
  return error.empty() ? "" : "the last checkpoint was not saved: " + error;
}

}  // namespace stretto
