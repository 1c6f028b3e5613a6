#include "stretto/rank/run.h"

#include <cstdlib>
#include <optional>

#include "stretto/archive/folder.h"
#include "stretto/archive/run_lock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/cli/recipe_handover.h"
#include "stretto/cli/resume_command.h"
#include "stretto/comm/job.h"
#include "stretto/config/batch_plan.h"
#include "stretto/launch/command_line.h"
#include "stretto/launch/supervise.h"
#include "stretto/trainer/run_folder.h"
#include "stretto/trainer/same_inputs.h"

namespace stretto::rank {
namespace {

bool launcher_keeps_log() { return std::getenv("STRETTO_LOG_FILE") != nullptr; }

void open_own_log(const Recipe& recipe, int rank) {
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

void run_rank(const std::string& program, const cli::RecipeArguments& arguments, Verb verb,
              const std::function<bool(const Run&)>& work) {
  ignore_write_signals();
  Recipe recipe = cli::recipe_of_rank(arguments, verb);
  const cluster::RankInfo info = cluster::read_rank_info();
  resolve_batch(recipe.training, info.world_size, recipe.origins);
  // Under a launcher that keeps each rank's output in a log file, every rank prints; else rank 0 alone.
  log::set_rank(info.rank, /*prints_info=*/launcher_keeps_log() || info.rank == 0);
  std::optional<archive::RunLock> lock;
  const bool trains = verb != Verb::test;
  if (info.rank == 0 && trains) lock.emplace(recipe.output);
  const Job job = join_job(recipe.training.device, "training.device", recipe.training.backend);
  require_same_inputs(*job.group, inputs_of(recipe));
  if (!launcher_keeps_log()) open_own_log(recipe, info.rank);  // rank 0 is here, so the folder is this run's
  if (info.rank == 0 && trains) RunFolder(recipe.output).write_text("config.yaml", dump_recipe(recipe));
  if (trains) resume_own_run(recipe, info);
  const bool finished = work({recipe, *job.group, job.device});
  if (!finished) {
    std::vector<std::string> command = launch::command_line();
    command.at(0) = program;
    log::info("stopped    the state is saved; resume with: {}",
              cli::resume_command(command, arguments, recipe, info.local_world_size));
  }
  job.group->barrier();  // ranks leave together, so that none takes another's end for a failure
}

int exit_code_of(const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const DataError& error) {
    log::error("{}", error.what());
    return launch::usage_error;  // a restart would read the same
  } catch (const Error& error) {
    log::error("{}", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 70;
  }
}

}  // namespace stretto::rank
