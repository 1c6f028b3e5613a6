#include "stretto/optim/optimizer.h"

#include "stretto/base/error.h"
#include "stretto/kernels/optimizer.h"

namespace stretto::optim {
namespace {

Tensor slice(const Tensor& buffer, const Range& range) {
  return buffer.defined() ? buffer.slice(0, range.begin, range.end) : buffer;
}

class Adamw : public Optimizer {
 public:
  explicit Adamw(const AdamwOptions& options) : Optimizer(options.lr), options_(options) {}
  std::string name() const override { return "AdamW"; }
  std::vector<std::string> slot_names() const override { return {"exp_avg", "exp_avg_sq"}; }

 private:
  void step_range(const Buffers& part, const std::vector<Tensor>& slots, bool decay, double lr,
                  double grad_scale, int64_t step) const override {
    kernels::adamw({part.master, part.grad, part.compute}, slots[0], slots[1],
                   {lr, options_.beta1, options_.beta2, options_.eps, decay ? options_.weight_decay : 0,
                    grad_scale, step});
  }
  AdamwOptions options_;
};

class Sgd : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options) : Optimizer(options.lr), options_(options) {
    if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
      throw ConfigError(
          "SGD: nesterov needs momentum above 0 and dampening 0, found momentum {} and dampening {}",
          options.momentum, options.dampening);
    }
  }
  std::string name() const override { return "SGD"; }
  std::vector<std::string> slot_names() const override {
    return options_.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
  }

 private:
  void step_range(const Buffers& part, const std::vector<Tensor>& slots, bool decay, double lr,
                  double grad_scale, int64_t step) const override {
    kernels::sgd({part.master, part.grad, part.compute}, slots.empty() ? Tensor() : slots[0],
                 {lr, options_.momentum, options_.dampening, decay ? options_.weight_decay : 0,
                  options_.nesterov, grad_scale, step});
  }
  SgdOptions options_;
};

}  // namespace

void Optimizer::bind(const Buffers& buffers, std::vector<Range> ranges, const Allocator& allocator) {
  if (buffers_.master.defined()) throw Error("{}: bound twice", name());
  buffers_ = buffers;
  ranges_ = std::move(ranges);
  for (size_t i = 0; i < slot_names().size(); ++i) {
    slots_.push_back(
        allocator(buffers.master.numel(), buffers.master.scalar_type(), buffers.master.device()));
  }
}

void Optimizer::step(double lr_factor, double grad_scale) {
  if (!buffers_.master.defined())
    throw Error("{}: step before bind; let the trainer or Lite set it up", name());
  ++steps_done_;
  for (const Range& range : ranges_) {
    std::vector<Tensor> slots;
    for (const Tensor& slot : slots_) slots.push_back(slice(slot, range));
    const Buffers part = {slice(buffers_.master, range), slice(buffers_.grad, range),
                          slice(buffers_.compute, range)};
    step_range(part, slots, range.decay, base_lr_ * lr_factor * range.lr_factor, grad_scale, steps_done_);
  }
}

std::unique_ptr<Optimizer> adamw(const AdamwOptions& options) { return std::make_unique<Adamw>(options); }
std::unique_ptr<Optimizer> sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }

}  // namespace stretto::optim
