#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/checkpoint_format/run_lock.h"
#include "stretto/comm/job.h"
#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/trainer/api/callback.h"

namespace stretto::rank {

// Runs some steps of a recipe without evaluation and checkpoints, for observation by callbacks. It uses
// <output>/<name> and does not touch the run in the recipe's output folder.
class ShortRun {
 public:
  // Joins the job. Throws ConfigError if the ranks have different inputs, and like make_mesh(). Collective.
  ShortRun(const Recipe& whole, const std::string& name, int64_t steps);

  // Runs the steps. Collective.
  void train(const std::vector<std::shared_ptr<Callback>>& callbacks);

  const Recipe& recipe() const { return recipe_; }
  const std::filesystem::path& folder() const { return folder_; }
  comm::Job& job() { return *job_; }
  bool is_first() const { return job_->info.rank == 0; }

 private:
  const std::filesystem::path folder_;
  const Recipe recipe_;
  std::optional<checkpoint_format::RunLock> lock_;  // of rank 0
  std::optional<comm::Job> job_;
  std::unique_ptr<Mesh> mesh_;
};

}  // namespace stretto::rank
