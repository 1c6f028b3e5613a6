#include "stretto/trainer/run/recurrence.h"

#include <cmath>

#include "stretto/base/clock.h"

namespace stretto::trainer {

using Unit = Interval::Unit;

Recurrence::Recurrence(Interval every, bool main_rank) : every_(std::move(every)), main_rank_(main_rank) {}

bool Recurrence::requested() const {
  const double seconds = every_.in(Unit::seconds);
  return main_rank_ && seconds > 0 && seconds_since(since_) >= seconds;
}

bool Recurrence::due(const StepReport& report, bool requested, std::optional<int64_t> evaluation) const {
  const double count = every_.count();
  // 0.3 / 0.1 is below 3 in floating point.
  const auto intervals = [count](double epochs) { return std::floor(epochs / count + 1e-9); };
  switch (every_.unit()) {
    case Unit::never:
      return false;
    case Unit::steps:
      return report.step % static_cast<int64_t>(count) == 0;
    case Unit::epochs:
      return intervals(report.epochs) > intervals(report.epochs_before);
    case Unit::evaluations:
      return evaluation && *evaluation % static_cast<int64_t>(count) == 0;
    case Unit::seconds:
      return requested;
  }
  return false;
}

}  // namespace stretto::trainer
