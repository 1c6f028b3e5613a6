#include <array>
#include <chrono>
#include <cmath>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/trainer/run/training_run.h"

namespace stretto {

// One batch of a module that steps its optimizers itself. A rank without samples makes the same calls with a batch that stands in.
StepReport TrainingRun::step_manually(const Requests& requests, StepReport report) {
  const auto start = std::chrono::steady_clock::now();
  const double communicated = mesh_.group(Axes::sum).seconds_inside();
  const data::GlobalBatch batch = cursor_.batch();
  if (batch.micro_batches.size() != 1) {
    throw ConfigError(
        "training.max_tokens: with manual optimization a batch is one micro-batch per rank, and this one is {}; set training.global_batch_size instead",
        batch.micro_batches.size());
  }
  const bool idle = batch.micro_batches[0].empty();
  LoggedWindows logged, ignored;
  StepContext context =
      make_context(idle ? ignored : logged, batch.reaches_all_ranks(mesh_.size(Axes::data)));
  const std::vector<int64_t> stand_in = {batch.samples.front()};
  const Batch mine = [&] {
    const TimedScope timed(report.data_wait);
    return make_batch(module_, dataset_, idle ? stand_in : batch.micro_batches[0]).to(device_);
  }();
  context.batch_count = mine.count;
  context.set_manual(&*manual_);
  manual_->begin_batch(idle);
  Loss loss;
  {
    std::optional<Autocast> autocast;
    if (compute_.autocast) autocast.emplace(device_.type(), *compute_.autocast);
    loss = module_.training_step(mine, context);
  }
  if (!loss.sum.defined() || loss.sum.numel() != 1)
    throw ShapeError(
        "training_step returned no loss to record; expected a sum, a single element, and its count");
  manual_->end_batch();
  std::array<double, 9> mine_of_all = {idle ? 0 : loss.sum.item<double>(), idle ? 0 : loss.count,
                                       logged.record.empty() ? 0.0 : 1, logged.epoch.empty() ? 0.0 : 1};
  std::ranges::copy(requests.flags(), mine_of_all.begin() + 4);
  Group& ranks = mesh_.group(Axes::sum);
  Tensor totals = at::tensor(at::ArrayRef<double>(mine_of_all), at::kDouble).to(ranks.device());
  ranks.all_reduce(totals).wait();
  totals = totals.cpu();
  const double* total = totals.const_data_ptr<double>();
  logged_.record.add(logged.record);
  logged_.epoch.add(logged.epoch);
  logged_somewhere_ |= total[2] > 0;
  logged_in_epoch_ |= total[3] > 0;
  report.requests = of_any_rank(Requests::of(&total[4]));
  report.loss = total[1] > 0 ? total[0] / total[1] : NAN;
  report.grad_norm = manual_->norm_;
  report.lr = manual_->lr(manual_->optimizers_.part(0).name);
  finish_report(batch, report);
  report.seconds = seconds_since(start);
  report.communication = mesh_.group(Axes::sum).seconds_inside() - communicated;
  return report;
}

}  // namespace stretto
