#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/tensor/tensor_source.h"

namespace stretto::nn {

struct LayerParameter;  // nn/tensor_parallel.h

// How the initial values of a parameter are drawn.
struct InitialValue {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double scale = 0;           // the constant; the standard deviation around 0; the bound of [-bound, bound)
  int64_t zero_row = -1;      // a row of the global table that is zero; -1: none
  std::string drawn_as = {};  // its name for the random generator; "": the parameter's name
};

// Initial values as in Hugging Face's BERT family: normal(0, std); biases are zero, weights of norms one, and
// row `padding_row` of `table` is zero.
struct InitRule {
  double std = 0.02;
  std::string table = {};
  int64_t padding_row = -1;  // -1: none

  // The rule for a parameter of a model.
  InitialValue of(const LayerParameter& parameter) const;
};

// Random initial values of parameters. Each is a function of the seed, the parameter's name and the element's
// row-major number in the global tensor: it is the same on any mesh, under any strategy and in any precision.
class InitialValues : public TensorSource {
 public:
  explicit InitialValues(uint64_t seed) : seed_(seed) {}

  // `shape`: the shape of the global tensor.
  void add(const std::string& name, std::vector<int64_t> shape, InitialValue value);

  bool has(const std::string& name) const override { return parameters_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return parameters_.at(name).shape; }
  void read(const std::string& name, const Region& region, const Tensor& values) const override;

 private:
  struct Parameter {
    std::vector<int64_t> shape;
    InitialValue value;
  };
  uint64_t seed_;
  std::map<std::string, Parameter> parameters_;
};

// Random initial values of all parameters of a module, which may be divided among ranks.
std::unique_ptr<InitialValues> initial_values(const torch::nn::Module& module, uint64_t seed,
                                              const InitRule& rule = {});

// Reads the tensors of a source into the parameters of the same names, or this rank's parts of them, without
// an engine. Parameters keep their dtype and device; one that is not divided shares the source's memory if
// these are equal. Throws DataError if a tensor of the source has another shape.
void fill_parameters(torch::nn::Module& module, const TensorSource& source);

}  // namespace stretto::nn
