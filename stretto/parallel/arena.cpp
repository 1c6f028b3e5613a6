#include "stretto/parallel/arena.h"

#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr int64_t alignment = 16;  // elements: 64 bytes of fp32, a cache line

int64_t aligned(int64_t elements) { return (elements + alignment - 1) / alignment * alignment; }

}  // namespace

Arena::Arena(std::vector<NamedParameter> parameters, Precision precision, const Allocator& allocator,
             const Allocator& grad_allocator) {
  if (parameters.empty())
    throw ConfigError("the model has no parameter to train: all are frozen or there are none");
  int64_t offset = 0;
  for (NamedParameter& info : parameters) {
    const int64_t size = info.tensor.numel();
    trained_elements_ += size;
    if (units_.empty() || units_.back().name != info.unit) units_.push_back({info.unit, offset, offset});
    parameters_.push_back({std::move(info), offset, offset + size, nullptr, nullptr});
    offset += aligned(size);
    units_.back().end = offset;
  }
  const at::Device device = parameters_[0].info.tensor.device();
  buffers_.master = allocator(offset, master_dtype(precision), device);
  buffers_.grad = grad_allocator(offset, master_dtype(precision), device);
  if (compute_dtype(precision) != master_dtype(precision)) {
    buffers_.compute = allocator(offset, compute_dtype(precision), device);
  }
  for (Parameter& parameter : parameters_) {
    if (parameter.info.sparse) use_small_pages(buffers_.grad.slice(0, parameter.begin, parameter.end));
    bind(parameter);
  }
}

void Arena::bind(Parameter& parameter) {
  at::NoGradGuard no_grad;
  Tensor tensor = parameter.info.tensor;
  const auto view = [&](const Tensor& buffer) {
    return buffer.slice(0, parameter.begin, parameter.end).view(tensor.sizes());
  };
  view(buffers_.master).copy_(tensor.detach());
  const Tensor values = view(buffers_.compute.defined() ? buffers_.compute : buffers_.master);
  if (buffers_.compute.defined()) values.copy_(tensor.detach());
  tensor.set_data(values);
  tensor.mutable_grad() = grad_view(parameter);
  parameter.data = tensor.data_ptr();
  parameter.grad = tensor.grad().data_ptr();
}

std::vector<optim::ParameterPiece> Arena::optimizer_pieces() const {
  std::vector<optim::ParameterPiece> pieces;
  for (const Parameter& parameter : parameters_) {
    const NamedParameter& info = parameter.info;
    pieces.push_back({.name = info.name,
                      .shape = info.tensor.sizes().vec(),
                      .begin = parameter.begin,
                      .end = parameter.end,
                      .weight_decay = info.decay,
                      .lr_factor = info.lr_factor,
                      .row_width = info.sparse ? info.tensor.size(1) : 0});
  }
  return pieces;
}

Tensor Arena::master_view(const Parameter& parameter) const {
  return buffers_.master.slice(0, parameter.begin, parameter.end).view(parameter.info.tensor.sizes());
}

void Arena::refresh_compute() {
  if (buffers_.compute.defined()) buffers_.compute.copy_(buffers_.master);
}

Tensor Arena::grad_view(const Parameter& parameter) const {
  const auto sizes = parameter.info.tensor.sizes();
  return buffers_.grad.slice(0, parameter.begin, parameter.end).view(sizes).detach();
}

void Arena::verify() const {
  for (const Parameter& parameter : parameters_) {
    verify_data(parameter);
    verify_grad(parameter);
  }
}

size_t Arena::rebind_dropped_gradients() {
  size_t dropped = 0;
  for (const Parameter& parameter : parameters_) {
    verify_data(parameter);
    Tensor tensor = parameter.info.tensor;
    if (tensor.grad().defined()) {
      verify_grad(parameter);
      continue;
    }
    ++dropped;
    const Tensor grad = grad_view(parameter);
    grad.zero_();
    tensor.mutable_grad() = grad;
  }
  return dropped;
}

void Arena::verify_data(const Parameter& parameter) const {
  if (parameter.info.tensor.const_data_ptr() == parameter.data) return;
  throw Error(
      "parameter {} was replaced after set-up (Module::to, Module::load or an assignment); change the model before it is set up, or write into the parameter in place",
      parameter.info.name);
}

void Arena::verify_grad(const Parameter& parameter) const {
  const Tensor& grad = parameter.info.tensor.grad();
  if (grad.defined() && grad.const_data_ptr() == parameter.grad) return;
  throw Error(
      "the gradient of {} was replaced or dropped; use zero_grad(/*set_to_none=*/false), and backward without create_graph",
      parameter.info.name);
}

}  // namespace stretto
