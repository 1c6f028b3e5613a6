#pragma once

#include <cstdint>
#include <string>

namespace stretto::optim {

// How the learning rate moves over a run, counted in optimizer steps. Names and shapes are transformers'.
struct ScheduleOptions {
  std::string type = "LinearWithWarmup";  // or "Constant"
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;  // of the run; where LinearWithWarmup arrives at 0
};

// The factor on the optimizer's lr for the step that comes after `steps_done` steps.
double schedule_factor(const ScheduleOptions& options, int64_t steps_done);

}  // namespace stretto::optim
