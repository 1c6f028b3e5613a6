#include <algorithm>
#include <chrono>
#include <cmath>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/trainer/run/training_run.h"

namespace stretto {

// One batch of a module that steps its optimizers itself.
StepReport TrainingRun::step_manually(const Requests& requests, StepReport report) {
  const auto start = std::chrono::steady_clock::now();
  Group& ranks = mesh_.group(Axes::sum);
  const double communicated = ranks.seconds_inside(), data_before = runner_.data_seconds();
  const data::GlobalBatch batch = cursor_.batch();
  if (batch.micro_batches.size() != 1) {
    throw ConfigError(
        "training.max_tokens: with manual optimization a batch is one micro-batch per rank, and this one is {}; set training.global_batch_size instead",
        batch.micro_batches.size());
  }
  LoggedWindows logged;
  StepTotals mine = runner_.by_hand(batch, pass_info(), *manual_, logged);
  mine.requests = requests;
  StepTotals::Packed sums = mine.pack();
  Tensor summed = at::tensor(at::ArrayRef<double>(sums), at::kDouble).to(ranks.device());
  ranks.all_reduce(summed).wait();
  summed = summed.cpu();
  std::copy_n(summed.const_data_ptr<double>(), sums.size(), sums.begin());
  const StepTotals totals = StepTotals::unpack(sums);
  keep_logged(logged, totals);
  report.requests = of_any_rank(totals.requests);
  report.loss = totals.count > 0 ? totals.loss / totals.count : NAN;
  report.grad_norm = manual_->norm_;
  report.lr = manual_->lr(manual_->optimizers_.part(0).name);
  finish_report(batch, report);
  report.seconds = seconds_since(start);
  report.communication = ranks.seconds_inside() - communicated;
  report.data_wait = runner_.data_seconds() - data_before;
  return report;
}

}  // namespace stretto
