#include "stretto/programs/stretto/earlier_run.h"

#include <cstdlib>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/numbered_name.h"
#include "stretto/programs/stretto/split_lines.h"

namespace stretto::cli {

using compat::ScriptPlan;

namespace {

// The file that the last step of a run of Flair's script writes.
constexpr const char* finished_mark = "test.tsv";

bool is_inside(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const std::string relative =
      std::filesystem::weakly_canonical(path).lexically_relative(std::filesystem::weakly_canonical(folder));
  return !relative.empty() && !relative.starts_with("..");
}

bool has_entries(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder) && !std::filesystem::is_empty(folder);
}

// Whether the folder has an unfinished run, possibly next to the files of an earlier one that it replaces.
bool has_unfinished_run(const ScriptPlan& plan) {
  const std::filesystem::path run = plan.run_folder();
  return has_entries(run / "checkpoints") && !std::filesystem::exists(run / "summary.json");
}

}  // namespace

bool replaces_earlier_run(const ScriptPlan& plan) {
  const bool finished = std::filesystem::exists(plan.output_dir / "config.json") && !has_unfinished_run(plan);
  if (plan.train && finished && !plan.overwrite)
    throw ConfigError("--output_dir {}: it holds a trained model; pass --overwrite_output_dir to train again",
                      plan.output_dir.string());
  if (!plan.train || !plan.overwrite) return false;
  const std::filesystem::path recipe = plan.recipe_file();
  const bool started = plan.resume && std::filesystem::exists(recipe) && read_file(recipe) == plan.recipe &&
                       !std::filesystem::exists(plan.output_dir / finished_mark);
  if (started) {
    log::info("continuing the run in {}, which has not finished", plan.output_dir.string());
    return false;
  }
  if (is_inside(plan.model, plan.run_folder()))
    throw ConfigError(
        "--model_name_or_path {}: it is in {}, which this command replaces; pass another --output_dir",
        plan.model.string(), plan.run_folder().string());
  return std::filesystem::exists(plan.run_folder());
}

EarlierRun::EarlierRun(const ScriptPlan& plan)
    : plan_(plan),
      run_(plan.output_dir / "run"),
      backup_(plan.output_dir / "previous.new"),
      recipe_(plan.recipe_file()),
      done_(plan.output_dir / finished_mark),
      done_backup_(done_.string() + ".earlier") {
  if (!std::filesystem::exists(backup_)) return;
  const checkpoint_format::RunLock lock(run_);
  new_run_has_begun() ? keep() : restore_files();
}

void EarlierRun::begin(bool replaced) {
  made_.emplace(plan_.output_dir);
  if (std::filesystem::exists(recipe_)) earlier_recipe_ = read_file(recipe_);
  if (replaced) {
    const checkpoint_format::RunLock lock(run_);  // throws while a run is active in the folder
    rename_folder(run_, backup_);
    if (std::filesystem::exists(done_)) std::filesystem::rename(done_, done_backup_);
  }
  if (!plan_.split_folder.empty() && !std::filesystem::exists(plan_.split_folder))
    made_for_parts_.emplace(plan_.split_folder);
  if (plan_.train) {
    lock_.emplace(run_);
    // The training process shares the lock.
    ::setenv(checkpoint_format::RunLock::variable, lock_->value().c_str(), 1);
  }
  write_file_atomic(recipe_, plan_.recipe);
}

void EarlierRun::restore() {
  if (new_run_has_begun()) return keep();
  restore_files();
  if (earlier_recipe_) {
    write_file_atomic(recipe_, *earlier_recipe_);
  } else {
    std::filesystem::remove(recipe_);
  }
  if (!made_for_parts_) return;
  for (const auto& part : parts_of_split_file(plan_)) std::filesystem::remove(part);
}

void EarlierRun::restore_and_explain() {
  const bool is_refused = !new_run_has_begun();
  restore();
  if (!is_refused) return;
  log::info("{}--print-recipe shows the recipe for these flags",
            earlier_recipe_ ? fmt::format("{} is unchanged; ", recipe_.string()) : "");
}

void EarlierRun::keep() {
  std::filesystem::remove(done_backup_);
  if (!std::filesystem::exists(backup_)) return;
  const std::filesystem::path previous = next_numbered(plan_.output_dir / "previous");
  rename_folder(backup_, previous);
  log::info("the earlier run was moved to {}", previous.string());
}

bool EarlierRun::new_run_has_begun() const {
  return std::filesystem::exists(run_ / "model") || has_entries(run_ / "checkpoints");
}

void EarlierRun::restore_files() {
  if (!std::filesystem::exists(backup_)) return;
  remove_folder(run_);
  rename_folder(backup_, run_);
  if (std::filesystem::exists(done_backup_)) std::filesystem::rename(done_backup_, done_);
}

}  // namespace stretto::cli
