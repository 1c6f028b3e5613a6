#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stretto/optim/optimizer.h"
#include "stretto/parallel/parameters.h"
#include "stretto/tensor/memory.h"

namespace stretto {

// All trained parameters of a model in a few flat buffers. After construction each parameter is a view of `compute` (or
// of `master`, where the model computes in the master's type) and its gradient a view of `grad`, so that autograd
// accumulates in place and reductions, norms and optimizer steps are arithmetic on ranges.
//
//   parameters   | w0      | b0 | w1            | b1 |       in registration order, each begins on a cache line
//   master       [ fp32 .................................. ]
//   grad         [ fp32 .................................. ]
//   compute      [ bf16 .................................. ]  bf16 runs only
//   units        |-- "" --|------- "encoder.layer.0" -----|  what will be gathered and released together
class Arena {
 public:
  struct Parameter {
    NamedParameter info;
    int64_t begin;  // elements of the buffers
    int64_t end;
    void* data;  // where the parameter and its gradient must lie
    void* grad;
  };
  struct Unit {
    std::string name;
    int64_t begin;
    int64_t end;
  };

  // Moves `parameters` in. They keep their identity (hooks, optimizers and modules that hold them stay valid); frozen
  // and other tensors stay outside. Gradients may lie in memory of another kind than the rest. REQUIRES: all are on one
  // device.
  Arena(std::vector<NamedParameter> parameters, Precision precision, const Allocator& allocator,
        const Allocator& grad_allocator);
  Arena(std::vector<NamedParameter> parameters, Precision precision, const Allocator& allocator)
      : Arena(std::move(parameters), precision, allocator, allocator) {}

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Unit>& units() const { return units_; }
  const optim::Buffers& buffers() const { return buffers_; }
  int64_t elements() const { return buffers_.master.numel(); }
  int64_t trained_elements() const { return trained_elements_; }

  // What an optimizer steps: each parameter by itself, all of it on every rank.
  std::vector<optim::ParameterPiece> optimizer_pieces() const;

  // The parameter's values at master precision, shaped as the parameter.
  Tensor master_view(const Parameter& parameter) const;

  // Rewrites the compute copy from master: after master has been written from outside.
  void refresh_compute();

  // Throws by name when a parameter or its gradient no longer lies in the arena: something replaced it (Module::to,
  // Module::load, zero_grad() with its default, backward with create_graph).
  void verify() const;

  // Gradients that were dropped (zero_grad() with its default) become zeros in the arena again. Returns how many were.
  // For the rest as verify().
  size_t rebind_dropped_gradients();

 private:
  void bind(Parameter& parameter);
  Tensor grad_view(const Parameter& parameter) const;
  void verify_data(const Parameter& parameter) const;
  void verify_grad(const Parameter& parameter) const;

  std::vector<Parameter> parameters_;
  std::vector<Unit> units_;
  optim::Buffers buffers_;
  int64_t trained_elements_ = 0;
};

}  // namespace stretto
