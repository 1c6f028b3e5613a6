#include "stretto/parallel/gradient_view.h"

#include <cmath>

#include "stretto/kernels/sum_of_squares.h"
#include "stretto/parallel/engine_parts.h"
#include "stretto/tensor/memory.h"

namespace stretto::parallel {
namespace {

// Calls `use` with the gradients that this rank has, and those set aside, of each parameter.
template <class Use>
void each_aside(EngineParts& engine, const std::function<bool(size_t parameter)>& which, const Use& use) {
  const Arena& arena = engine.arena;
  const Range& kept = arena.gradient_range();
  for (size_t i = 0; i < arena.parameters().size(); ++i) {
    const Range part = kept & Range{arena.parameters()[i].begin, arena.parameters()[i].end};
    if (part.size() == 0 || !which(i)) continue;
    use(arena.gradients(part),
        engine.gradients_aside.slice(0, part.begin - kept.begin, part.end - kept.begin));
  }
}

// The sum of squares of the gradients that this rank has, where layers are divided among ranks: elements that
// several of these ranks have count on the first of them.
double squares_of_first_copies(const EngineParts& engine) {
  const Arena& arena = engine.arena;
  double sum = 0;
  for (const Arena::Parameter& parameter : arena.parameters()) {
    const Range part = engine.reducer.held() & Range{parameter.begin, parameter.end};
    if (part.size() > 0 && engine.copied.is_first(parameter.info.layout))
      sum += kernels::sum_of_squares(arena.gradients(part));
  }
  return sum;
}

}  // namespace

double GradientView::norm() const {
  const bool divided = engine_->facts.is_divided, to_owners = engine_->reducer.sums_to_owners();
  const double squares = divided ? squares_of_first_copies(*engine_) : engine_->reducer.sum_of_squares();
  if (!divided && !to_owners) return std::sqrt(squares);
  const Tensor sum = at::scalar_tensor(squares, at::kDouble).to(engine_->ranks.shard.device());
  if (to_owners) engine_->ranks.shard.all_reduce(sum).wait();
  if (divided) engine_->ranks.parts.all_reduce(sum).wait();
  return std::sqrt(sum.item<double>());
}

std::string GradientView::first_nonfinite() const {
  return engine_->parameter_name(
      engine_->least_of_ranks(engine_->reducer.first_nonfinite(), engine_->reducer.sums_to_owners()));
}

bool GradientView::own_are_finite() const { return engine_->reducer.all_finite(); }

Tensor GradientView::held() const { return engine_->arena.gradients(engine_->reducer.held()); }

NamedTensors GradientView::by_name(double factor) const {
  const Arena& arena = engine_->arena;
  const Range& own = engine_->reducer.held();
  const Tensor all = at::empty({arena.elements()}, arena.buffers().grad.options());
  all.slice(0, own.begin, own.end).copy_(held() * factor);
  if (engine_->reducer.sums_to_owners()) engine_->gather_shards(all);
  NamedTensors named;
  for (const Arena::Parameter& parameter : arena.parameters())
    named[parameter.info.name] = engine_->whole(parameter, all.slice(0, parameter.begin, parameter.end));
  return named;
}

void GradientView::scale(double factor) { held().mul_(factor); }

void GradientView::clamp(double limit) { held().clamp_(-limit, limit); }

void GradientView::clear() { engine_->reducer.zero_gradients(); }

void GradientView::clear(const std::function<bool(size_t)>& which) {
  for (size_t i = 0; i < engine_->arena.parameters().size(); ++i) {
    if (which(i)) engine_->reducer.zero_gradient(i);
  }
}

void GradientView::set_aside(const std::function<bool(size_t)>& which) {
  const Tensor& gradients = engine_->arena.buffers().grad;
  if (!engine_->gradients_aside.defined())
    engine_->gradients_aside = plain_memory()(gradients.numel(), gradients.scalar_type(), gradients.device());
  each_aside(*engine_, which, [](const Tensor& own, const Tensor& aside) { Tensor(aside).add_(own); });
  clear();
}

void GradientView::restore(const std::function<bool(size_t)>& which) {
  if (!engine_->gradients_aside.defined()) return;
  each_aside(*engine_, which, [](const Tensor& own, const Tensor& aside) {
    Tensor(own).add_(aside);
    Tensor(aside).zero_();
  });
}

size_t GradientView::restore_dropped() { return engine_->arena.rebind_dropped_gradients(); }

double clip_scale(double norm, double max_norm) {
  return max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6) : 1;
}

}  // namespace stretto::parallel
