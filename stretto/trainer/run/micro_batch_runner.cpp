#include "stretto/trainer/run/micro_batch_runner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/fixed_order.h"
#include "stretto/parallel/loss_scale.h"
#include "stretto/parallel/phase.h"
#include "stretto/parallel/reducer.h"
#include "stretto/tensor/autocast.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/records/logged_values.h"
#include "stretto/trainer/run/turns.h"

namespace stretto::trainer {
namespace {

// The number of micro-batches, without samples, before the first of `own_parts`.
int64_t passes_before_parts(const data::GlobalBatch& batch) {
  return std::ssize(batch.micro_batches) - batch.own_parts.size();
}

// The losses of this rank's micro-batches of a global batch.
class BatchLosses {
 public:
  BatchLosses(const data::GlobalBatch& batch, at::Device device)
      : batch_(batch),
        losses_(at::zeros({std::max<int64_t>(1, std::ssize(batch.micro_batches))},
                          at::TensorOptions(at::kDouble).device(device))),
        counts_(batch.micro_batches.size()) {}

  void set(int64_t micro_batch, const Loss& loss) {
    losses_[micro_batch] = loss.sum.detach().reshape({});
    counts_[static_cast<size_t>(micro_batch)] = loss.count;
  }

  StepTotals totals(const LoggedWindows& logged) const {
    StepTotals totals = {
        .loss = parallel::sum_rows_in_fixed_order(losses_.clone()).item<double>(),
        .count = std::accumulate(counts_.begin(), counts_.end(), 0.0),
        .logged = !logged.record.empty(),
        .logged_in_epoch = !logged.epoch.empty(),
        .losses = std::vector<double>(static_cast<size_t>(batch_.parts)),
        .counts = std::vector<double>(static_cast<size_t>(batch_.parts)),
    };
    const int64_t idle = passes_before_parts(batch_);
    for (int64_t part = 0; part < batch_.own_parts.size(); ++part) {
      const auto of_step = static_cast<size_t>(batch_.own_parts.begin + part);
      totals.losses[of_step] = losses_[idle + part].item<double>();
      totals.counts[of_step] = counts_[static_cast<size_t>(idle + part)];
    }
    return totals;
  }

 private:
  const data::GlobalBatch& batch_;
  const Tensor losses_;
  std::vector<double> counts_;
};

const char* name_of(EvaluationStep step) {
  if (step == EvaluationStep::predict) return "predict_step";
  return step == EvaluationStep::test ? "test_step" : "validation_step";
}

// Calls a part of a step. Errors of libtorch and of the module's own code name it; those of the system have
// messages of their own.
template <class Call>
auto in_step(const char* part, const PassInfo& info, const Call& call) {
  const auto place = [&] { return fmt::format("{} of step {}", part, info.step + 1); };
  try {
    return call();
  } catch (c10::Error& error) {
    error.add_context("in " + place());
    throw;
  } catch (const parallel::BackwardOutside& error) {
    throw Error("{}: {}", place(), error.what());
  } catch (const Error&) {
    throw;
  } catch (const std::system_error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Error("{}: {}", place(), error.what());
  }
}

Predictions call(Module& module, EvaluationStep step, const Batch& batch, StepContext& context) {
  if (step == EvaluationStep::predict) return module.predict_step(batch, context);
  return step == EvaluationStep::test ? module.test_step(batch, context)
                                      : module.validation_step(batch, context);
}

}  // namespace

// The pass of one micro-batch through the module.
struct MicroBatchRunner::Pass {
  std::span<const int64_t> samples;  // this rank's
  int64_t number;                    // in the global batch
  bool last;
  bool skipped;  // the step is not called
  Batch batch;   // `samples`, or the substitute if there are none
  StepContext context;

  bool idle() const { return samples.empty(); }
};

MicroBatchRunner::MicroBatchRunner(Module& module, const data::Dataset& dataset, const Mesh& mesh,
                                   MicroBatchOptions options)
    : module_(module), dataset_(dataset), mesh_(mesh), options_(options) {}

// Calls step(), and use() with its result; for a skipped micro-batch, calls use() with an empty Output.
template <class Output>
void MicroBatchRunner::each(const data::GlobalBatch& batch, const PassInfo& info, bool idle_runs,
                            LoggedWindows& logged, const std::function<Output(Pass&)>& step,
                            const std::function<void(const Pass&, const Output&)>& use) {
  for (int64_t number = 0; number < std::ssize(batch.micro_batches); ++number)
    run_pass(batch, number, info, idle_runs, logged, step, use);
}

template <class Output>
void MicroBatchRunner::run_pass(const data::GlobalBatch& batch, int64_t number, const PassInfo& info,
                                bool idle_runs, LoggedWindows& logged,
                                const std::function<Output(Pass&)>& step,
                                const std::function<void(const Pass&, const Output&)>& use) {
  const std::span<const int64_t> own_samples = batch.micro_batches[static_cast<size_t>(number)];
  LoggedWindows ignored;
  Pass pass = {.samples = own_samples,
               .number = number,
               .last = number + 1 == std::ssize(batch.micro_batches),
               .skipped = own_samples.empty() && !idle_runs,
               .batch = {},
               .context = StepContext(mesh_, own_samples.empty() ? ignored : logged,
                                      batch.reaches_all_ranks(mesh_.size(Axes::data)))};
  if (pass.skipped) return use(pass, {});
  {
    RECORD_USER_SCOPE(phase::data);
    const TimedScope timed(data_seconds_);
    const auto samples = pass.idle() ? std::span(batch.samples).first(1) : own_samples;
    pass.batch = make_batch(module_, dataset_, samples).to(options_.device);
  }
  pass.context.forward = info.forward;
  pass.context.step = info.step;
  pass.context.epoch = info.epoch;
  pass.context.validation_set = info.validation_set;
  pass.context.batch_count = pass.batch.count;
  const Output output = [&] {
    RECORD_USER_SCOPE(phase::forward);
    std::optional<Autocast> autocast;
    if (options_.autocast) autocast.emplace(options_.device.type(), *options_.autocast);
    return step(pass);
  }();
  use(pass, output);
}

StepTotals MicroBatchRunner::train(const data::GlobalBatch& batch, const PassInfo& info,
                                   parallel::Engine& engine, LoggedWindows& logged, parallel::Reduce reduce) {
  BatchLosses losses(batch, options_.device);
  const auto step = [&](Pass& pass) {
    return in_step("training_step", info, [&] { return module_.training_step(pass.batch, pass.context); });
  };
  const auto use = [&](const Pass& pass, const Loss& loss) {
    if (!pass.skipped) require_loss(loss);
    {
      RECORD_USER_SCOPE(phase::backward);
      const double factor = pass.idle() ? 0 : info.loss_factor;
      in_step("backward", info, [&] {
        engine.backward(pass.skipped ? Tensor() : parallel::scaled_loss(loss.sum, factor),
                        reduce == parallel::Reduce::last && !pass.last ? parallel::Reduce::later : reduce);
      });
    }
    if (!pass.idle()) losses.set(pass.number, loss);
  };
  each<Loss>(batch, info, options_.collective_forward, logged, step, use);
  return losses.totals(logged);
}

StepTotals MicroBatchRunner::by_hand(const data::GlobalBatch& batch, const PassInfo& info,
                                     ManualOptimization& manual, LoggedWindows& logged) {
  BatchLosses losses(batch, options_.device);
  const int64_t count = std::ssize(batch.micro_batches);
  std::optional<Turns> turns;
  if (batch.parts > 0 && count > 1) turns.emplace(count);
  const auto step_of_module = [&](Pass& pass) {
    try {
      return in_step("training_step", info, [&] { return module_.training_step(pass.batch, pass.context); });
    } catch (const ManualOptimization::Found&) {
      return Loss(at::zeros({}), 0);
    }
  };
  const auto step = [&](Pass& pass) {
    pass.context.set_manual(&manual);
    const int64_t part = batch.own_parts.begin + pass.number - passes_before_parts(batch);
    manual.begin({.idle = pass.idle(),
                  .first = pass.number == 0,
                  .last = pass.last,
                  .loss_factor = info.loss_factor,
                  .parts = std::max<int64_t>(1, batch.parts),
                  .part = batch.parts > 0 ? part : 0,
                  .turns = turns ? &*turns : nullptr,
                  .number = pass.number});
    return step_of_module(pass);
  };
  const auto use = [&](const Pass& pass, const Loss& loss) {
    if (!loss.sum.defined() || loss.sum.numel() != 1) {
      throw ConfigError(
          "training_step returned {} as the loss to record; expected a sum, a single element, and its count",
          loss.sum.defined() ? describe(loss.sum) : "no tensor");
    }
    if (!std::isfinite(loss.count) || loss.count < 0) {
      throw ConfigError(
          "training_step returned {} as the count of the loss to record; expected the number of samples or tokens in the sum",
          loss.count);
    }
    manual.end();
    if (!pass.idle()) losses.set(pass.number, loss);
  };
  if (turns && !manual.search_) {
    turns->run(
        [&](int64_t number) { run_pass<Loss>(batch, number, info, /*idle_runs=*/true, logged, step, use); });
  } else {
    each<Loss>(batch, info, /*idle_runs=*/true, logged, step, use);
  }
  return losses.totals(logged);
}

void MicroBatchRunner::evaluate(const data::GlobalBatch& batch, const PassInfo& info, EvaluationStep step,
                                EvaluatedMetrics& objects, LoggedWindows& logged,
                                const UsePredictions& use_predictions) {
  // The guard encloses all micro-batches, so that autocast casts each parameter once.
  std::optional<Autocast> autocast;
  if (options_.autocast) autocast.emplace(options_.device.type(), *options_.autocast);
  const auto run = [&](Pass& pass) {
    objects.count(!pass.idle());
    return call(module_, step, pass.batch, pass.context);
  };
  const auto use = [&](const Pass& pass, const Predictions& predictions) {
    objects.count(true);
    if (pass.idle() || predictions.empty()) return use_predictions(pass.samples, {});
    const auto& [rows, bytes] = predictions;
    if (rows.defined() &&
        (rows.dim() != 2 || rows.size(0) != pass.batch.count || rows.scalar_type() != at::kDouble)) {
      throw ShapeError("{} returned {}; expected [{}, K] Double, one row per sample", name_of(step),
                       describe(rows), pass.batch.count);
    }
    if (!bytes.empty() && std::ssize(bytes) != pass.batch.count) {
      throw ShapeError("{} returned bytes of {}; expected {}, one per sample of the batch", name_of(step),
                       counted(std::ssize(bytes), "sample"), pass.batch.count);
    }
    use_predictions(pass.samples, {rows.defined() ? rows.to(at::kCPU).contiguous() : rows, bytes});
  };
  each<Predictions>(batch, info, options_.collective_forward, logged, run, use);
}

}  // namespace stretto::trainer
