#include "stretto/parallel/gradient_scratch.h"

namespace stretto::parallel {
namespace {

bool is_large(const Tensor& memory) { return memory.nbytes() > ScratchBuffers::largest_kept_bytes; }

}  // namespace

GradientScratch::GradientScratch(Arena& arena, const Allocator& allocator)
    : arena_(arena), buffers_([&arena, allocator](int64_t elements) {
        const Tensor& grad = arena.buffers().grad;
        return allocator(elements, grad.scalar_type(), grad.device());
      }) {}

bool GradientScratch::serves(size_t unit) const {
  if (!arena_.gradients_are_sharded()) return false;
  const Range& elements = arena_.units()[unit].elements;
  return (elements & arena_.gradient_range()).size() < elements.size();
}

void GradientScratch::open(size_t unit) {
  if (!serves(unit) || is_open(unit)) return;
  const int64_t elements = arena_.units()[unit].elements.size();
  in_use_[unit] = buffers_.take(elements);
  const Tensor gradients = in_use_[unit].slice(0, 0, elements);
  if (is_large(gradients)) use_small_pages_for_tables(unit, gradients);
  arena_.bind_gradients(unit, gradients);
}

// Uses small pages for large tables, since backward writes few of their rows. REQUIRES: the pages of large
// gradients are released when they are closed.
void GradientScratch::use_small_pages_for_tables(size_t unit, const Tensor& gradients) const {
  const Arena::Unit& of = arena_.units()[unit];
  for (size_t i = of.first_parameter; i < of.end_parameter; ++i) {
    const Arena::Parameter& parameter = arena_.parameters()[i];
    if (!parameter.info.sparse) continue;
    use_small_pages(
        gradients.slice(0, parameter.begin - of.elements.begin, parameter.end - of.elements.begin));
  }
}

void GradientScratch::close(size_t unit) {
  if (!serves(unit) || !is_open(unit)) return;
  const Tensor gradients = arena_.units()[unit].gradients;
  is_large(gradients) ? release_pages(gradients) : void(Tensor(gradients).zero_());
  arena_.bind_gradients(unit, {});
  buffers_.give_back(in_use_.extract(unit).mapped());
}

void GradientScratch::open_all() {
  for (size_t unit = 0; unit < arena_.units().size(); ++unit) open(unit);
}

void GradientScratch::close_all() {
  for (size_t unit = 0; unit < arena_.units().size(); ++unit) close(unit);
}

void GradientScratch::release(size_t unit, const Range& range) {
  const Arena::Unit& of = arena_.units()[unit];
  if (is_large(of.gradients))
    release_pages(of.gradients.slice(0, range.begin - of.elements.begin, range.end - of.elements.begin));
}

}  // namespace stretto::parallel
