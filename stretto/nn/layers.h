#pragma once

#include <memory>
#include <string>

#include <torch/nn/module.h>

#include "stretto/nn/functional.h"

namespace stretto::nn {

// Layers are torch modules, so that a model's parameters are found and named as in libtorch. Parameters are
// created uninitialised: the model sets them from a seed or from files.

// Options of a Linear.
struct LinearOptions {
  bool bias = true;
  bool transposed = false;  // weight is [in, out], as in Hugging Face's Conv1D
};

// A linear map of the last dimension: y = x W^T + b.
struct Linear : torch::nn::Module {
  Linear(int64_t in, int64_t out, const LinearOptions& options = {});
  Tensor forward(const Tensor& x) const { return nn::linear(x, map()); }  // [T, in] -> [T, out]
  // for fused functions
  Affine map() const { return {weight, bias, transposed, outputs_over, inputs_over, of_rows}; }
  bool transposed;
  Tensor weight;                                          // [out, in], transposed [in, out]
  Tensor bias;                                            // [out], or undefined
  Group *outputs_over = nullptr, *inputs_over = nullptr;  // see Affine; set by tensor_parallel.h
  bool of_rows = false;
};

// A table of vectors, which are looked up by their ids.
struct Embedding : torch::nn::Module {
  // sparse: the table is used through this layer alone, and batches use few of its rows. With the Trainer and
  // AdamW, only these rows are reduced and updated; the other rows are updated, with bitwise equal results,
  // before they are next used, saved or evaluated. During a step `weight` itself may be out of date.
  Embedding(int64_t rows, int64_t width, bool sparse = false);
  Tensor forward(const Tensor& ids) const { return nn::embedding_sum({lookup(ids)}); }  // [T] -> [T, width]
  // The table's lookup of `ids` [T], for fused functions.
  Lookup lookup(const Tensor& ids) const { return {ids, weight, hook}; }
  Tensor weight;  // [rows, width]
  bool sparse;
  std::shared_ptr<RowHook> hook;  // the observer of the rows in use
};

// Base of normalisations over the last dimension.
struct Norm : torch::nn::Module {
  NormParameters all() const { return {weight, bias, eps}; }  // for functions
  Tensor weight;                                              // [width]
  Tensor bias;                                                // [width], or undefined
  double eps;

 protected:
  Norm(int64_t width, double eps);
};

// Layer normalisation (Ba et al. 2016).
struct LayerNorm : Norm {
  LayerNorm(int64_t width, double eps);
  Tensor forward(const Tensor& x) const;  // [T, width] -> [T, width]
};

// Root mean square normalisation (Zhang & Sennrich 2019).
struct RmsNorm : Norm {
  RmsNorm(int64_t width, double eps) : Norm(width, eps) {}
};

// Registers `layer` at the dotted `path` below `root`, with empty modules for the intermediate names, and
// returns it: a model can have its layers as plain members and have the parameter names of its weight files.
template <class Layer>
std::shared_ptr<Layer> add_layer(torch::nn::Module& root, const std::string& path,
                                 std::shared_ptr<Layer> layer);

// Whether weight_decay applies to the parameter `name` registered in `owner`: not to biases, nor to the
// weights of norms, which are recognised by the type of the module.
bool has_weight_decay(const torch::nn::Module& owner, const std::string& name);

// Registers `layer` as add_layer() does.
void register_at(torch::nn::Module& root, const std::string& path, std::shared_ptr<torch::nn::Module> layer);

template <class Layer>
std::shared_ptr<Layer> add_layer(torch::nn::Module& root, const std::string& path,
                                 std::shared_ptr<Layer> layer) {
  register_at(root, path, layer);
  return layer;
}

}  // namespace stretto::nn
