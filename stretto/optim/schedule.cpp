#include "stretto/optim/schedule.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::optim {

double schedule_factor(const ScheduleOptions& options, int64_t steps_done) {
  if (options.type == "Constant") return 1;
  if (options.type != "LinearWithWarmup") {
    throw ConfigError("\"{}\" is not a schedule; possible: LinearWithWarmup, Constant", options.type);
  }
  if (steps_done < options.warmup_steps) {
    return static_cast<double>(steps_done) / static_cast<double>(options.warmup_steps);
  }
  const double left = static_cast<double>(options.total_steps - steps_done);
  const double decaying =
      static_cast<double>(std::max<int64_t>(1, options.total_steps - options.warmup_steps));
  return std::max(0.0, left / decaying);
}

}  // namespace stretto::optim
