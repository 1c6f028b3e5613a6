#include "stretto/trainer/profile/step_profiler.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include "stretto/base/clock.h"
#include "stretto/base/files.h"

namespace stretto::trainer {
namespace {

namespace kineto = torch::profiler::impl;

const std::set<kineto::ActivityType>& activities() {
  static const std::set<kineto::ActivityType> wanted =
      at::hasCUDA() ? std::set{kineto::ActivityType::CPU, kineto::ActivityType::CUDA}
                    : std::set{kineto::ActivityType::CPU};
  return wanted;
}

// libtorch writes the file itself; it is rewritten so that it appears under its name atomically.
void write_trace(torch::autograd::profiler::ProfilerResult& recorded, const std::filesystem::path& path) {
  const std::filesystem::path made = path.string() + ".new";
  make_folders(path.parent_path());
  recorded.save(made);
  write_file_atomic(path, read_file(made));
  std::filesystem::remove(made);
}

}  // namespace

void StepProfiler::step_start(FitContext&) {
  if (seen_++ != options_.warmup_steps) return;
  const kineto::ProfilerConfig config(kineto::ProfilerState::KINETO, /*report_input_shapes=*/true);
  torch::autograd::profiler::prepareProfiler(config, activities());
  torch::autograd::profiler::enableProfiler(config, activities());
  start_ = std::chrono::steady_clock::now();
}

void StepProfiler::step_end(FitContext&, const StepReport&) {
  if (seen_ != options_.warmup_steps + options_.steps) return;
  const double seconds = seconds_since(start_);
  const auto recorded = torch::autograd::profiler::disableProfiler();
  write_trace(*recorded, options_.trace);
  std::vector<TimedEvent> events;
  for (const auto& event : recorded->events()) {
    if (event.deviceType() != at::kCPU) continue;
    TimedEvent timed = {
        .name = event.name(),
        .seconds = static_cast<double>(event.durationNs()) * 1e-9,
        .thread = event.startThreadId(),
        .start =
            static_cast<double>(static_cast<int64_t>(event.startNs() - recorded->trace_start_ns())) * 1e-9};
    if (event.hasShapes()) {
      timed.matmul =
          layer_matmul(timed.name, event.shapes(), event.dtypes().empty() ? "" : event.dtypes()[0]);
      timed.operations =
          timed.matmul ? timed.matmul->operations() : matmul_operations(timed.name, event.shapes());
    }
    events.push_back(std::move(timed));
  }
  profile_ = summarise(events, options_.steps, seconds);
}

}  // namespace stretto::trainer
