#include "stretto/optim/tensor_parts.h"

#include <algorithm>

namespace stretto::optim {
namespace {

void sum_of_counted(const ParameterPiece& piece, const Tensor& values) {
  if (!counts(piece)) values.zero_();
  piece.parts->sum(values);
}

}  // namespace

bool ParameterPiece::is_cut_along(int axis) const {
  if (axis < 0) axis += static_cast<int>(layout.global.size());
  return std::ranges::any_of(layout.cuts, [&](const Cut& cut) { return cut.axis == axis; });
}

bool counts(const ParameterPiece& piece) {
  if (piece.parts == nullptr) return true;
  if (!piece.is_cut()) return piece.parts->position() == 0;
  return piece.parts->position() % piece.layout.cuts[0].copies == 0;
}

void sum_over_parts(const ParameterPiece& piece, std::span<double> values) {
  const auto size = static_cast<int64_t>(values.size());
  if (piece.is_cut()) sum_of_counted(piece, at::from_blob(values.data(), {size}, at::kDouble));
}

void sum_over_parts_along(int axis, const ParameterPiece& piece, const Tensor& values) {
  if (piece.is_cut_along(axis)) sum_of_counted(piece, values);
}

bool steps_parts(const Optimizer& optimizer) {
  return optimizer.placement() == Placement::flat || dynamic_cast<const StepsParts*>(&optimizer) != nullptr;
}

Tensor local_part(const TensorLayout& layout, const Tensor& whole) {
  Tensor part = whole;
  for (const Cut& cut : layout.cuts) {
    std::vector<Tensor> intervals;
    for (const Range& interval : cut.intervals)
      intervals.push_back(part.slice(cut.axis, interval.begin, interval.end));
    part = at::cat(intervals, cut.axis);
  }
  return part;
}

}  // namespace stretto::optim
