#include <algorithm>
#include <cmath>

#include "stretto/base/rank_list.h"
#include "stretto/trainer/run/training_run.h"

// Finds the rank and the parameter that caused a step to fail.
namespace stretto::trainer {

// The reduction has replaced this rank's own gradient, so its part of the step is computed again, without
// communication. Buffers (running statistics) and the random number generator are restored afterwards, for
// runs that skip the step.
bool TrainingRun::own_gradient_is_finite(const data::GlobalBatch& batch) {
  const std::string random_before = parallel::random_state();
  std::vector<Tensor> buffers_before;
  for (const auto& [name, tensor] : engine_.facts().tensors.buffers) buffers_before.push_back(tensor.clone());
  engine_.gradients().clear();
  LoggedWindows ignored;
  runner_.train(batch, pass_info(), engine_, ignored, parallel::Reduce::never);
  const bool finite = engine_.gradients().own_are_finite();
  engine_.gradients().clear();
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_before.size(); ++i)
    Tensor(engine_.facts().tensors.buffers[i].second).copy_(buffers_before[i]);
  parallel::set_random_state(random_before);
  return finite;
}

// Names the first rank whose own loss or gradient is not finite, and the first parameter whose reduced
// gradient is not.
std::string TrainingRun::find_culprit(const StepTotals& local, const data::GlobalBatch& batch) {
  const std::string parameter = engine_.gradients().first_nonfinite();
  const auto first_rank_without = [this](bool finite) -> std::optional<size_t> {
    const auto all = session_.mesh.world().all_gather_bytes(finite ? "finite" : "");
    const auto found = std::ranges::find(all, "");
    if (found == all.end()) return std::nullopt;
    return found - all.begin();
  };
  std::vector<std::string> clauses;
  auto rank = first_rank_without(std::isfinite(local.loss));
  if (!rank) rank = first_rank_without(own_gradient_is_finite(batch));
  if (rank) clauses.push_back(fmt::format("first on rank {}", *rank));
  if (!parameter.empty()) clauses.push_back(fmt::format("first in the gradient of {}", parameter));
  if (!rank) clauses.emplace_back("only in the sum over all ranks");
  return fmt::format(" ({})", fmt::join(clauses, ", "));
}

// For the `call`-th step of a module that steps its optimizers itself: names the ranks whose own gradient is
// not finite. The steps before it are not taken again, so that the parameters are those that it had.
std::string TrainingRun::find_ranks(const data::GlobalBatch& batch, size_t call) {
  ManualOptimization& manual = *session_.manual;
  engine_.gradients().clear();
  manual.search_.emplace(ManualOptimization::Search{.call = call});
  LoggedWindows ignored;
  runner_.by_hand(batch, pass_info(), manual, ignored);
  const auto all = session_.mesh.world().all_gather_bytes(manual.search_->is_finite ? "finite" : "");
  std::vector<int> ranks;
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].empty()) ranks.push_back(static_cast<int>(rank));
  return ranks.empty() ? " in the sum over all ranks only" : " on " + rank_list(ranks);
}

}  // namespace stretto::trainer
