#include "stretto/base/error.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {
namespace {

// The number of units of `together` elements in each of `maps` maps of `size` elements in all.
int64_t units_of(const char* layer, const char* what, int64_t size, int64_t maps, int64_t together,
                 const TensorParallel& ranks) {
  if (maps < 1 || together < 1 || size % (maps * together) != 0) {
    throw ConfigError("{}: {} {} are not {} times a multiple of {}", layer, size, what, maps, together);
  }
  const int64_t units = size / (maps * together);
  if (units < ranks.size()) {
    throw ConfigError("{}: {} {} cannot be divided among {} ranks, in parts of {}; use at most {} (tp)",
                      layer, units * together, what, ranks.size(), together, units);
  }
  return units;
}

// The elements that a rank has of `units` units.
int64_t elements_of(const TensorParallel& ranks, int64_t units, int64_t maps, int64_t together) {
  return ranks.part(units).size() * maps * together;
}

// The layout of a tensor that is cut along `axis`, which has so many elements.
TensorLayout cut(std::vector<int64_t> global, int axis, const TensorParallel& ranks, int64_t maps,
                 int64_t together) {
  TensorLayout layout = {.global = std::move(global)};
  if (!ranks.divides()) return layout;
  const int64_t of_map = layout.global[static_cast<size_t>(axis)] / maps, units = of_map / together;
  const Range part = ranks.part(units);
  Cut cut;
  cut.axis = axis;
  cut.largest = ranks.part(units, 0).size() * maps * together;
  for (int64_t map = 0; map < maps; ++map)
    cut.intervals.push_back(Range{part.begin * together, part.end * together}.shifted(map * of_map));
  layout.cuts.push_back(std::move(cut));
  return layout;
}

std::vector<int64_t> weight_shape(int64_t in, int64_t out, bool transposed) {
  return transposed ? std::vector{in, out} : std::vector{out, in};
}

}  // namespace

ColumnLinear::ColumnLinear(int64_t in, int64_t out, const TensorParallel& ranks, const ColumnOptions& options)
    : Linear(
          in,
          elements_of(ranks, units_of("ColumnLinear", "outputs", out, options.maps, options.together, ranks),
                      options.maps, options.together),
          options.linear),
      in_(in),
      out_(out),
      ranks_(ranks),
      options_(options) {
  if (ranks.divides()) outputs_over = ranks.ranks;
}

TensorLayout ColumnLinear::layout(const std::string& parameter) const {
  if (parameter == "bias") return cut({out_}, 0, ranks_, options_.maps, options_.together);
  return cut(weight_shape(in_, out_, transposed), transposed ? 1 : 0, ranks_, options_.maps,
             options_.together);
}

RowLinear::RowLinear(int64_t in, int64_t out, const TensorParallel& ranks, const LinearOptions& options,
                     int64_t together)
    : Linear(elements_of(ranks, units_of("RowLinear", "inputs", in, 1, together, ranks), 1, together), out,
             options),
      in_(in),
      out_(out),
      ranks_(ranks),
      together_(together) {
  if (ranks.divides()) inputs_over = ranks.ranks;
}

TensorLayout RowLinear::layout(const std::string& parameter) const {
  if (parameter == "bias") return {.global = {out_}};
  return cut(weight_shape(in_, out_, transposed), transposed ? 0 : 1, ranks_, 1, together_);
}

VocabularyEmbedding::VocabularyEmbedding(int64_t rows, int64_t width, const TensorParallel& ranks,
                                         bool looked_up_only)
    : Embedding(ranks.part(units_of("VocabularyEmbedding", "rows", rows, 1, 1, ranks)).size(), width,
                looked_up_only && !ranks.divides()),
      rows_(rows),
      width_(width),
      ranks_(ranks) {}

Tensor VocabularyEmbedding::forward(const Tensor& ids) const {
  if (!ranks_.divides()) return Embedding::forward(ids);
  require_ids(ids, rows_);
  const Range own = ranks_.part(rows_);
  const Tensor here = ids.ge(own.begin).logical_and(ids.lt(own.end));
  const Tensor vectors = Embedding::forward((ids - own.begin).clamp(0, own.size() - 1));
  return sum_of_parts(at::where(here.unsqueeze(1), vectors, at::zeros({}, vectors.options())), *ranks_.ranks);
}

Tensor VocabularyEmbedding::sum(const Tensor& ids, std::vector<Lookup> others, const Context& context) const {
  if (!ranks_.divides()) {
    others.insert(others.begin(), lookup(ids));
    return embedding_sum(others, context);
  }
  const Tensor vectors = forward(ids);
  return others.empty() ? vectors : vectors + embedding_sum(others, context);
}

TensorLayout VocabularyEmbedding::layout(const std::string&) const {
  return cut({rows_, width_}, 0, ranks_, 1, 1);
}

}  // namespace stretto::nn
