#include <algorithm>
#include <cmath>

#include "stretto/trainer/run/nonfinite_gradient.h"
#include "stretto/trainer/run/training_run.h"

namespace stretto::trainer {

void TrainingRun::step_manually(const data::GlobalBatch& batch, const Requests& requests,
                                StepReport& report) {
  ManualOptimization& manual = *session_.manual;
  LoggedWindows logged;
  StepTotals local;
  try {
    local = runner_.by_hand(batch, pass_info(), manual, logged);
  } catch (const NonfiniteGradient& error) {
    if (session_.mesh.world().size() == 1) throw;
    throw error.with_ranks(find_ranks(batch, error.call()));
  }
  require_registered_leaves();
  local.requests = requests;
  StepTotals::Packed sums = local.pack();
  Group& ranks = session_.mesh.group(Axes::sum);
  Tensor summed = at::tensor(at::ArrayRef<double>(sums), at::kDouble).to(ranks.device());
  ranks.all_reduce(summed).wait();
  summed = summed.cpu();
  std::copy_n(summed.const_data_ptr<double>(), sums.size(), sums.begin());
  const StepTotals totals = StepTotals::unpack(sums);
  session_.logged.add(logged, totals);
  if (parallel::LossScale& scale = session_.loss_scale; scale.in_use()) {
    report.loss_scale = scale.value();
    manual.overflowed_ ? scale.count_overflow() : scale.count_finite();
  }
  report.requests = of_any_rank(totals.requests);
  report.loss = totals.count > 0 ? totals.loss / totals.count : NAN;
  report.grad_norm = manual.norm_.value_or(0);
  report.lr = manual.lr(manual.optimizers_.part(0).name);
}

}  // namespace stretto::trainer
