#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {
namespace {

// How the elements along an axis are divided: those of `maps` maps side by side, in units of `together`, each
// on `copies` consecutive ranks.
struct Division {
  int64_t maps = 1, together = 1;
  int copies = 1;
};

// The number of units in each of the maps, which have `size` elements in all.
int64_t units_of(const char* layer, const char* what, int64_t size, const Division& division,
                 const TensorParallel& ranks) {
  const auto& [maps, together, copies] = division;
  if (maps < 1 || together < 1 || size % (maps * together) != 0) {
    throw ConfigError("{}: {} {} are not {} times a multiple of {}", layer, size, what, maps, together);
  }
  if (copies < 1 || ranks.size() % copies != 0) {
    throw ConfigError("{}: {} ranks (tp) are not a multiple of {} copies", layer, ranks.size(), copies);
  }
  const int64_t units = size / (maps * together);
  if (units < ranks.size() / copies) {
    throw ConfigError("{}: {} {} cannot be divided among {} ranks, in parts of {}; use at most {} (tp)",
                      layer, units * together, what, ranks.size(), together, units * copies);
  }
  return units;
}

// The elements that the rank at `of` has of `units` units per map.
int64_t elements_of(const TensorParallel& ranks, int of, int64_t units, const Division& division) {
  return ranks.part(units, of, division.copies).size() * division.maps * division.together;
}

// The elements that this rank has of `size` elements. Throws ConfigError if they cannot be divided.
int64_t own_elements(const char* layer, const char* what, int64_t size, const TensorParallel& ranks,
                     const Division& division = {}) {
  return elements_of(ranks, ranks.position(), units_of(layer, what, size, division, ranks), division);
}

Division division_of(const ColumnOptions& options) {
  return {options.maps, options.together, options.copies};
}

// The layout of a tensor that is cut along `axis`. If all ranks have copies of one part, that is a cut as
// well: each computes a part of its gradient.
TensorLayout cut(std::vector<int64_t> global, int axis, const TensorParallel& ranks,
                 const Division& division = {}) {
  TensorLayout layout = {.global = std::move(global)};
  if (!ranks.divides()) return layout;
  const auto& [maps, together, copies] = division;
  const int64_t of_map = layout.global[static_cast<size_t>(axis)] / maps, units = of_map / together;
  const Range part = ranks.part(units, ranks.position(), copies);
  Cut cut;
  cut.axis = axis;
  cut.largest = elements_of(ranks, 0, units, division);
  cut.copies = copies;
  for (int64_t map = 0; map < maps; ++map)
    cut.intervals.push_back(Range{part.begin * together, part.end * together}.shifted(map * of_map));
  layout.cuts.push_back(std::move(cut));
  return layout;
}

// The layout of a parameter of rows, of whose gradient each rank computes a part if they divide rows.
TensorLayout layout_of_rows(int64_t width, const TensorParallel& ranks) {
  if (!ranks.divides_rows()) return {.global = {width}};
  return cut({width}, 0, ranks, {.together = width, .copies = ranks.size()});
}

std::vector<int64_t> weight_shape(int64_t in, int64_t out, bool transposed) {
  return transposed ? std::vector{in, out} : std::vector{out, in};
}

}  // namespace

ColumnLinear::ColumnLinear(int64_t in, int64_t out, const TensorParallel& ranks, const ColumnOptions& options)
    : Linear(in, own_elements("ColumnLinear", "outputs", out, ranks, division_of(options)), options.linear),
      in_(in),
      out_(out),
      ranks_(ranks),
      options_(options) {
  if (ranks.divides()) outputs_over = ranks.ranks;
  of_rows = ranks.divides_rows();
}

TensorLayout ColumnLinear::layout(const std::string& parameter) const {
  if (parameter == "bias") return cut({out_}, 0, ranks_, division_of(options_));
  return cut(weight_shape(in_, out_, transposed), transposed ? 1 : 0, ranks_, division_of(options_));
}

RowLinear::RowLinear(int64_t in, int64_t out, const TensorParallel& ranks, const LinearOptions& options,
                     int64_t together)
    : Linear(own_elements("RowLinear", "inputs", in, ranks, {.together = together}), out, options),
      in_(in),
      out_(out),
      ranks_(ranks),
      together_(together) {
  if (ranks.divides()) inputs_over = ranks.ranks;
  of_rows = ranks.divides_rows();
}

TensorLayout RowLinear::layout(const std::string& parameter) const {
  if (parameter == "bias") return layout_of_rows(out_, ranks_);
  return cut(weight_shape(in_, out_, transposed), transposed ? 0 : 1, ranks_, {.together = together_});
}

template <class Plain>
TensorLayout NormBetweenLayers<Plain>::layout(const std::string&) const {
  return layout_of_rows(this->weight.numel(), ranks_);
}
template struct NormBetweenLayers<LayerNorm>;
template struct NormBetweenLayers<RmsNorm>;

bool divides_rows(const torch::nn::Module& module) {
  return std::ranges::any_of(layer_parameters(module), [](const LayerParameter& parameter) {
    const auto* map = dynamic_cast<const Linear*>(parameter.layer);
    return map != nullptr && map->of_rows;
  });
}

VocabularyEmbedding::VocabularyEmbedding(int64_t rows, int64_t width, const TensorParallel& ranks,
                                         bool looked_up_only)
    : Embedding(own_elements("VocabularyEmbedding", "rows", rows, ranks), width, looked_up_only),
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

TensorLayout VocabularyEmbedding::layout(const std::string&) const { return cut({rows_, width_}, 0, ranks_); }

}  // namespace stretto::nn
