#include "stretto/parallel/backward.h"

#include <utility>

#include "stretto/parallel/engine_parts.h"

namespace stretto::parallel {
namespace {

bool sums_now(const EngineParts& engine, Reduce reduce) {
  return reduce == Reduce::last || (reduce == Reduce::later && engine.arena.gradients_are_sharded());
}

}  // namespace

Backward::Backward(EngineParts& engine, GradientUses uses, Reduce reduce)
    : engine_(&engine), reduce_(reduce) {
  engine.reducer.begin_backward(std::move(uses), sums_now(engine, reduce));
}

Backward::Backward(Backward&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), reduce_(other.reduce_) {}

// Ranks with other parts of the layers wait for this rank's parts, too, and end with an error that names it
// once its groups are destroyed. A reduction out of order would end them with a misleading one.
Backward::~Backward() {
  if (engine_ != nullptr) engine_->reducer.abort_backward(/*others_wait=*/!engine_->facts.is_divided);
}

void Backward::close() {
  EngineParts& engine = *std::exchange(engine_, nullptr);
  engine.reducer.end_backward();
  if (reduce_ != Reduce::later) return;
  engine.reducer.set_gradients_aside();
  if (sums_now(engine, reduce_)) engine.reducer.finish();
}

}  // namespace stretto::parallel
