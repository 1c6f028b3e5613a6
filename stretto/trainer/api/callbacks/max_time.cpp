#include "stretto/trainer/api/callbacks/max_time.h"

#include "stretto/base/clock.h"

namespace stretto::trainer {

MaxTime::MaxTime(const std::string& limit) : limit_(limit), limit_seconds_(parse_duration(limit)) {}

double MaxTime::seconds() const { return seconds_before_ + seconds_since(start_); }

void MaxTime::fit_start(FitContext& fit) {
  start_ = Clock::now();
  step_start(fit);
}

void MaxTime::step_start(FitContext& fit) {
  if (fit.mesh.world().rank() == 0 && seconds() >= limit_seconds_)
    fit.stop(fmt::format("training.max_time, {}, is over", limit_));
}

void MaxTime::add_state(State& state) const { state.scalars["seconds"] = seconds(); }

void MaxTime::resume(const State& state) {
  state.scalar("seconds").get_to(seconds_before_);
  start_ = Clock::now();
}

}  // namespace stretto::trainer
