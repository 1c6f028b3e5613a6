#include <cstdlib>
#include <optional>

#include "stretto/archive/folder.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/cli/rank_program.h"
#include "stretto/cli/resume_command.h"
#include "stretto/config/batch_plan.h"
#include "stretto/rank/job.h"
#include "stretto/rank/verbs.h"
#include "stretto/tasks/text_classification.h"
#include "stretto/trainer/run_folder.h"

namespace stretto::rank {
namespace {

// Under stretto's launcher, which keeps each rank's output in a log file, every rank prints. Elsewhere a rank writes its
// own log, and only rank 0 prints.
void set_up_log(const Recipe& recipe, int rank) {
  const bool launcher_keeps_log = std::getenv("STRETTO_LOG_FILE") != nullptr;
  log::set_rank(rank, /*prints_info=*/launcher_keeps_log || rank == 0);
  if (launcher_keeps_log) return;
  make_folders(recipe.output / "logger_logs");
  log::open_file(recipe.output / "logger_logs" / fmt::format("training_{}.log", rank));
}

// What `resume` says holds for the first life of a job; one that was started again goes on from its own
// checkpoints.
void resume_own_run(Recipe& recipe, const cluster::RankInfo& info) {
  if (info.restart_count == 0) return;
  if (!archive::list_checkpoints(recipe.output / "checkpoints").empty()) recipe.resume = "auto";
}

}  // namespace

void run_recipe(const cli::RecipeArguments& arguments, Verb verb) {
  Recipe recipe = cli::load_checked(arguments, verb);
  const cluster::RankInfo info = cluster::read_rank_info();
  resolve_batch(recipe.training, info.world_size, recipe.origins);
  set_up_log(recipe, info.rank);
  std::optional<RunLock> lock;
  if (info.rank == 0 && verb == Verb::train) lock.emplace(recipe.output);
  Job job = join_job(recipe.training);
  if (info.rank == 0 && verb == Verb::train)
    RunFolder(recipe.output).write_text("config.yaml", dump_recipe(recipe));
  if (verb == Verb::train) resume_own_run(recipe, info);
  TextClassification task(recipe, *job.group, job.device);
  if (verb == Verb::train) {
    if (!task.train()) {
      log::info("stopped    the state is saved; resume with: {}",
                cli::resume_command(cli::command_line(), arguments, recipe, info.local_world_size));
    }
  } else {
    task.test();
  }
  job.group->barrier();  // ranks leave together, so that none takes another's end for a failure
}

}  // namespace stretto::rank
