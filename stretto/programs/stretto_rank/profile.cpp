#include <cstdlib>

#include <ATen/Parallel.h>

#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/machine/processor.h"
#include "stretto/programs/arguments/recipe_handover.h"
#include "stretto/programs/stretto_rank/short_run.h"
#include "stretto/programs/stretto_rank/verbs.h"
#include "stretto/trainer/profile/step_profiler.h"

namespace stretto::rank {
namespace {

// Peak operations per second of this rank's cores in the recipe's compute dtype; 0 if unknown.
double peak_of(const Recipe& recipe) {
  const machine::Processor processor = machine::parse_processor(read_file("/proc/cpuinfo"));
  const bool bf16 = recipe.training.precision == Precision::bf16 && processor.bf16();
  const double per_cycle =
      bf16 ? processor.bf16_operations_per_cycle() : processor.fp32_operations_per_cycle();
  return (recipe.training.precision == Precision::fp64 ? 0.5 : 1) * per_cycle * machine::measure_clock() *
         1e9 * at::get_num_threads();
}

}  // namespace

void profile(const arguments::ProfileArguments& arguments) {
  const Recipe recipe = arguments::recipe_of_rank(arguments.recipe, Verb::train);
  ShortRun run(recipe, "profile", arguments.warmup_steps + arguments.steps);
  comm::Job& job = run.job();
  ::setenv("KINETO_LOG_LEVEL", "6", /*overwrite=*/0);  // libtorch's profiler logs its stages at level 5
  const auto profiler = std::make_shared<trainer::StepProfiler>(
      trainer::StepProfilerOptions{.warmup_steps = arguments.warmup_steps,
                                   .steps = arguments.steps,
                                   .trace = run.folder() / fmt::format("trace_{}.json", job.info.rank)});
  run.train({profiler});
  if (run.is_first() && !profiler->profile()) {
    log::warning("the run ended before {} could be recorded", counted(arguments.steps, "step"));
  } else if (run.is_first()) {
    const trainer::Profile& measured = *profiler->profile();
    log::info("{}{}traces     {} (open in chrome://tracing or ui.perfetto.dev)",
              to_text(measured, job.device.is_cpu() ? peak_of(recipe) : 0),
              job.device.is_cpu() ? to_text(measure_floor(measured), measured.step_seconds) : "",
              (run.folder() / "trace_<rank>.json").string());
  }
  job.group->barrier();
}

}  // namespace stretto::rank
