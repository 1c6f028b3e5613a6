#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stretto/nn/layers.h"

namespace stretto {
class AxisRanks;
class Group;
struct Range;
struct TensorLayout;
}  // namespace stretto

namespace stretto::nn {

// Tensor parallelism (Shoeybi et al. 2019): layers are divided among ranks, which run the same passes on the
// same batches, in the same order. Tensors between such layers are equal on all of these ranks, bit for bit.
// If rows are divided, too (sequence parallelism, Korthikanti et al. 2022), each rank has an equal number of
// rows instead, in the order of ranks.

// The ranks among which the layers of a model are divided.
struct TensorParallel {
  Group* ranks = nullptr;  // null: layers are whole
  bool sequence = false;   // the rows of tensors between layers are divided among the ranks, too

  // The ranks of a mesh, or of Lite: TensorParallel::of(mesh.tensor_parallel()). They are valid as long as
  // it.
  static TensorParallel of(const AxisRanks& ranks);

  bool divides() const { return size() > 1; }
  bool divides_rows() const { return sequence && divides(); }
  TensorParallel with_whole_rows() const { return {ranks}; }
  int size() const;
  int position() const;  // of this rank
  // The part of `units` units that the rank at `of` has: consecutive ones; the first ranks may have one more.
  // `copies` consecutive ranks have each part. REQUIRES: copies divides size().
  Range part(int64_t units, int of, int copies = 1) const;
  Range part(int64_t units) const;
  int64_t first(int64_t units) const;  // the first unit of this rank's part
  int64_t count(int64_t units) const;  // the number of units in it
};

// x itself, of any shape and equal on all ranks, of which each computes a part of a layer: the gradient of
// x is the sum of the ranks' gradients. Backward is collective.
Tensor to_parts(const Tensor& x, Group& ranks);

// The sum of the ranks' x, which have one shape; it is equal on all ranks. The gradient of each x is that of
// the sum. Forward is collective.
Tensor sum_of_parts(const Tensor& x, Group& ranks);

// Sequence parallelism: from the rows of all ranks to those of this one, and back. T is a multiple of the
// number of ranks.

// This rank's rows of x [T, ...], which is equal on all ranks: [T / ranks, ...]; x itself if the ranks do not
// divide rows. Backward joins the gradients of all ranks' rows, and is collective. Throws ShapeError if the
// ranks do not divide T.
Tensor own_rows(const Tensor& x, const TensorParallel& ranks);

// The rows of all ranks, in the order of ranks, equal on all of them: x [N, ...] -> [ranks * N, ...]; x
// itself if the ranks do not divide rows. The gradient of each x is its part of the result's, which is equal
// on all ranks. Forward is collective.
Tensor join_rows(const Tensor& x, const TensorParallel& ranks);

// join_rows() from x [N, ...] to [ranks * N, ...], where each rank computes a part of a layer from the
// result: the gradient of x is the sum of the ranks' gradients of its rows. Both directions are collective.
Tensor join_rows_to_parts(const Tensor& x, Group& ranks);

// This rank's rows of the sum of the ranks' x, which have one shape [T, ...]: [T / ranks, ...]. The gradient
// of x is that of the rows of all ranks. Both directions are collective.
Tensor own_rows_of_sum(const Tensor& x, Group& ranks);

// The columns of all ranks side by side, [T, columns], equal on all of them. REQUIRES: x are the columns of
// ranks.part(columns). The gradient of each x is its part of the result's. Forward is collective.
Tensor join_columns(const Tensor& x, int64_t columns, const TensorParallel& ranks);

// A layer that has only parts of its parameters, such as a layer of a tensor-parallel rank.
class HasLayout {
 public:
  virtual ~HasLayout() = default;
  // The layout of the parameter that this layer registers under this name.
  virtual TensorLayout layout(const std::string& parameter) const = 0;
};

// A parameter of a module, with the layer that registers it, which must outlive this.
struct LayerParameter {
  std::string name;                // in the module, such as "encoder.0.weight"
  std::string own_name;            // in the layer, such as "weight"
  const torch::nn::Module* layer;  // not null
  Tensor tensor;

  // Whole, unless the layer derives from HasLayout. Throws ConfigError if the layer's layout does not match
  // the parameter's shape.
  TensorLayout layout() const;
};

// The parameters of a module in the order of named_parameters(). Visits each layer once.
std::vector<LayerParameter> layer_parameters(const torch::nn::Module& module);

// Layers that are divided among the ranks of tensor parallelism. A rank has a part of their parameters, under
// the names of the whole layer; files and initial values are those of the whole parameters. With
// TensorParallel{} they are whole. In pairs, they need one sum of activations per direction:
//
//   up = register_module("up", std::make_shared<nn::ColumnLinear>(64, 256, ranks));
//   down = register_module("down", std::make_shared<nn::RowLinear>(256, 64, ranks));
//   y = down->forward(nn::activate(up->forward(x), nn::Activation::relu));

// Options of a ColumnLinear.
struct ColumnOptions {
  LinearOptions linear = {};
  // The outputs are those of so many maps side by side, as in a weight that fuses query, key and value. Each
  // map is divided.
  int64_t maps = 1;
  int64_t together = 1;  // consecutive outputs of a map that one rank has, such as those of a head
  // The number of consecutive ranks that have the same outputs, such as a head of keys and values that the
  // heads of queries of several ranks read. Each of them computes a part of the parameters' gradients, which
  // the engine sums.
  int copies = 1;
};

// A linear map of which each rank computes some of the outputs: x [T, in], equal on all ranks -> [T, outputs
// of this rank], in ascending order. If the ranks divide rows, x are this rank's, [T / ranks, in].
struct ColumnLinear : Linear, HasLayout {
  // Throws ConfigError if maps and `together` do not divide `out`, if copies do not divide the ranks, or if a
  // rank would have no output.
  ColumnLinear(int64_t in, int64_t out, const TensorParallel& ranks, const ColumnOptions& options = {});
  TensorLayout layout(const std::string& parameter) const override;

 private:
  int64_t in_, out_;
  TensorParallel ranks_;
  ColumnOptions options_;
};

// A linear map of which each rank has some of the inputs: x [T, inputs of this rank], as a ColumnLinear
// computes them -> [T, out], equal on all ranks. The bias is whole on each rank. If the ranks divide rows,
// the result are this rank's, [T / ranks, out].
struct RowLinear : Linear, HasLayout {
  // `together`: as for a ColumnLinear. Throws ConfigError like ColumnLinear.
  RowLinear(int64_t in, int64_t out, const TensorParallel& ranks, const LinearOptions& options = {},
            int64_t together = 1);
  TensorLayout layout(const std::string& parameter) const override;

 private:
  int64_t in_, out_;
  TensorParallel ranks_;
  int64_t together_;
};

// Norms of tensors between divided layers. If the ranks divide rows, each computes a part of the gradients of
// weight and bias, which the engine sums.
template <class Plain>
struct NormBetweenLayers : Plain, HasLayout {
  NormBetweenLayers(int64_t width, double eps, const TensorParallel& ranks)
      : Plain(width, eps), ranks_(ranks) {}
  TensorLayout layout(const std::string& parameter) const override;

 private:
  TensorParallel ranks_;
};
extern template struct NormBetweenLayers<LayerNorm>;
extern template struct NormBetweenLayers<RmsNorm>;
using LayerNormBetweenLayers = NormBetweenLayers<LayerNorm>;
using RmsNormBetweenLayers = NormBetweenLayers<RmsNorm>;

// Whether the module has layers that divide rows.
bool divides_rows(const torch::nn::Module& module);

// A table of vectors of which each rank has some of the rows. TensorParallel::sequence does not matter.
struct VocabularyEmbedding : Embedding, HasLayout {
  // A divided table that is sparse is reduced as a whole. Throws ConfigError if a rank would have no row.
  VocabularyEmbedding(int64_t rows, int64_t width, const TensorParallel& ranks, bool sparse = false);

  // The vectors of ids [T], equal on all ranks: [T, width], equal on all ranks. Throws DataError for ids out
  // of range.
  Tensor forward(const Tensor& ids) const;
  // The sum of these vectors and of lookups in tables that each rank has whole, [T, width], as
  // embedding_sum().
  Tensor sum(const Tensor& ids, std::vector<Lookup> others, const Context& context) const;
  TensorLayout layout(const std::string& parameter) const override;

 private:
  int64_t rows_, width_;
  TensorParallel ranks_;
};

}  // namespace stretto::nn
