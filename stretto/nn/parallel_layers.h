#pragma once

#include "stretto/nn/has_layout.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {

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
};

// A linear map of which each rank computes some of the outputs: x [T, in], equal on all ranks -> [T, outputs
// of this rank], in ascending order.
struct ColumnLinear : Linear, HasLayout {
  // Throws ConfigError if maps and `together` do not divide `out`, or if a rank would have no output.
  ColumnLinear(int64_t in, int64_t out, const TensorParallel& ranks, const ColumnOptions& options = {});
  TensorLayout layout(const std::string& parameter) const override;

 private:
  int64_t in_, out_;
  TensorParallel ranks_;
  ColumnOptions options_;
};

// A linear map of which each rank has some of the inputs: x [T, inputs of this rank], as a ColumnLinear
// computes them -> [T, out], equal on all ranks. The bias is whole on each rank.
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

// A table of vectors of which each rank has some of the rows.
struct VocabularyEmbedding : Embedding, HasLayout {
  // A table that is divided is not sparse. Throws ConfigError if a rank would have no row.
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
