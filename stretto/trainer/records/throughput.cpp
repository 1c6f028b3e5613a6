#include "stretto/trainer/records/throughput.h"

namespace stretto::trainer {

void Throughput::add(int64_t samples, int64_t tokens, Clock::time_point end) {
  if (points_.empty()) {
    points_.push_back({end, 0, 0});
    return;
  }
  const Point last = points_.back();
  if (!steps_ && points_.size() == 2) points_.pop_back();
  if (steps_ && std::ssize(points_) > *steps_) points_.pop_front();
  points_.push_back({end, last.samples + samples, last.tokens + tokens});
}

std::optional<Throughput::Rates> Throughput::rates() const {
  if (points_.size() < 2) return std::nullopt;
  const Point &first = points_.front(), &last = points_.back();
  const double seconds = std::chrono::duration<double>(last.time - first.time).count();
  if (seconds <= 0 || last.samples == first.samples) return std::nullopt;
  return Rates{static_cast<double>(last.samples - first.samples) / seconds,
               static_cast<double>(last.tokens - first.tokens) / seconds};
}

}  // namespace stretto::trainer
