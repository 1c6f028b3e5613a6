#include "stretto/programs/stretto_rank/run.h"

#include <cstdlib>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/log_setup.h"
#include "stretto/base/process.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/run_lock.h"
#include "stretto/comm/job.h"
#include "stretto/config/requested_checkpoint.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/programs/arguments/failure.h"
#include "stretto/programs/arguments/recipe_handover.h"
#include "stretto/programs/arguments/resume_command.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/run/same_inputs.h"

namespace stretto::rank {
namespace {

bool launcher_keeps_log() { return std::getenv("STRETTO_LOG_FILE") != nullptr; }

// Opens the log, which is kept in memory until the first step of the run: before that, the run may be
// refused.
void open_own_log(const Recipe& recipe, const std::string& name) {
  log::open_held_file(recipe.output / "logger_logs" / (name + ".log"));
}

// `resume` applies to the first start of a job; after a restart, the job resumes from its own checkpoints.
void resume_own_run(Recipe& recipe, const cluster::RankInfo& info) {
  if (info.restart_count == 0) return;
  if (!checkpoint_format::list_checkpoints(checkpoints_of(recipe)).empty()) recipe.resume = "auto";
}

}  // namespace

void run_rank(const std::string& program, const arguments::RecipeArguments& arguments, Verb verb,
              const std::function<bool(const Run&)>& work) {
  ignore_write_signals();
  Recipe recipe = arguments::recipe_of_rank(arguments, verb);
  const cluster::RankInfo info = cluster::read_rank_info();
  log::buffer_stderr(/*to_launcher=*/!info.heartbeat.empty());
  // If the launcher writes a log file per rank, every rank prints info lines; else only rank 0.
  const bool evaluates = cluster::evaluation_socket().has_value();  // for a run that holds the folder
  log::set_rank(info.rank, /*prints_info=*/!evaluates && (launcher_keeps_log() || info.rank == 0));
  std::optional<checkpoint_format::RunLock> lock;
  const bool trains = verb != Verb::test && !evaluates;
  if (trains) resume_own_run(recipe, info);
  if (info.rank == 0 && trains) {
    lock.emplace(recipe.output);
    require_requested_checkpoint(recipe);  // before data are read
  }
  const comm::Job job =
      comm::join_job(recipe.training.device, "training.device", recipe.training.backend, "training.backend");
  trainer::require_same_inputs(*job.group, inputs_of(recipe));
  const Mesh mesh = make_mesh(recipe, *job.group);
  if (evaluates) {
    open_own_log(recipe, "evaluation");
  } else if (!launcher_keeps_log()) {  // rank 0 has joined and thus holds the lock
    open_own_log(recipe, fmt::format("training_{}", info.rank));
  }
  const bool finished = work({recipe, mesh, job.device});
  if (!finished) {
    std::vector<std::string> command = launch::command_line();
    command.at(0) = program;
    log::info("stopped    the state is saved; resume with: {}",
              arguments::resume_command(command, arguments, recipe, info.local_world_size));
  }
  log::release_file();
  job.group->barrier();  // an early exit of a rank would look like a failure
}

int exit_code_of(const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (...) {
    const arguments::Failure failure = arguments::describe_exception();
    log::error("{}", failure.message);
    return failure.exit_code;
  }
}

}  // namespace stretto::rank
