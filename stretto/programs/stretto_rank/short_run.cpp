#include "stretto/programs/stretto_rank/short_run.h"

#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/tasks/task.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/run/same_inputs.h"

namespace stretto::rank {
namespace {

Recipe shortened(Recipe recipe, const std::filesystem::path& folder, int64_t steps) {
  if (!recipe.data.cache) recipe.data.cache = recipe.output / "cache";
  recipe.output = folder / "run";
  recipe.training.max_steps = steps;
  recipe.evaluate.every = "never";
  recipe.checkpoint = {};
  recipe.checkpoint.monitor.reset();
  recipe.resume = "auto";
  return recipe;
}

}  // namespace

ShortRun::ShortRun(const Recipe& whole, const std::string& name, int64_t steps)
    : folder_(whole.output / name), recipe_(shortened(whole, folder_, steps)) {
  const cluster::RankInfo info = cluster::read_rank_info();
  log::set_rank(info.rank, info.rank == 0);
  if (info.rank == 0) {
    lock_.emplace(folder_);
    remove_folder(recipe_.output);
  }
  job_.emplace(comm::join_job(recipe_.training.device, "training.device", recipe_.training.backend,
                              "training.backend"));
  trainer::require_same_inputs(*job_->group, inputs_of(recipe_));
  mesh_.reset(new Mesh(make_mesh(recipe_, *job_->group)));
}

void ShortRun::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  make_task({recipe_, *mesh_, job_->device, bundled_models()})->train(callbacks);
  if (is_first()) remove_folder(recipe_.output);
}

}  // namespace stretto::rank
