#include "stretto/lite/optimizer.h"

#include <map>
#include <set>

#include "stretto/base/error.h"
#include "stretto/lite/torch_state.h"
#include "stretto/tensor/autocast.h"

namespace stretto::lite {
namespace {

class ArenaOptimizer : public OptimizerBackend {
 public:
  ArenaOptimizer(Model& model, std::unique_ptr<optim::Optimizer> optimizer)
      : model_(model), optimizer_(std::move(optimizer)), lr_(optimizer_->base_rates().lr) {
    optimizer_->bind(model.arena()->buffers(), model.arena()->optimizer_pieces(), plain_memory());
  }

  void zero_grad() override {
    if (!model_.is_clean()) model_.zero_grad();
  }
  void step() override {
    model_.require_gradients(optimizer_->name() + ": step");
    optimizer_->step({.lr = lr_}, 1);
    model_.gradients_were_taken();
    forget_casts();
  }
  Tensor step(const std::function<Tensor()>& closure) override {
    const Tensor loss = closure();
    step();
    return loss;
  }
  double lr() const override { return lr_; }
  void set_lr(double lr) override { lr_ = lr; }
  std::vector<torch::optim::OptimizerParamGroup>& param_groups() override {
    throw Error("{}: an optimizer of stretto's has no param_groups; set_lr() sets its learning rate",
                optimizer_->name());
  }

  void add_state(State& state, const std::string& prefix, const Names*) override {
    optimizer_->add_state(state, prefix);
    state.scalars[prefix]["lr"] = lr_;
  }
  void resume(const State& state, const std::string& prefix) override {
    optimizer_->resume(state, prefix);
    state.scalars.at(prefix).at("lr").get_to(lr_);
  }

 private:
  Model& model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  double lr_;
};

class TorchOptimizer : public OptimizerBackend {
 public:
  TorchOptimizer(Model& model, std::shared_ptr<torch::optim::Optimizer> optimizer)
      : model_(model), optimizer_(std::move(optimizer)) {
    std::map<const void*, size_t> places;
    for (size_t i = 0; i < model.arena()->parameters().size(); ++i)
      places[model.arena()->parameters()[i].info.tensor.unsafeGetTensorImpl()] = i;
    for (const auto& group : optimizer_->param_groups()) {
      for (const Tensor& parameter : group.params()) {
        if (!parameter.requires_grad()) continue;
        const auto found = places.find(parameter.unsafeGetTensorImpl());
        if (found == places.end()) {
          throw ConfigError(
              "setup: the optimizer steps a tensor {} that is no parameter of model {}; make it from model->parameters(), after the last change to the model",
              describe(parameter), model.number());
        }
        mine_.insert(found->second);
      }
    }
  }

  void zero_grad() override {
    mine_.size() == model_.arena()->parameters().size() ? model_.zero_grad() : model_.zero_grad(mine_);
  }
  void step() override {
    model_.require_gradients("step");
    optimizer_->step();
    forget_casts();
  }
  Tensor step(const std::function<Tensor()>& closure) override {
    const Tensor loss = optimizer_->step([&] {
      forget_casts();  // the optimizer has moved the parameters
      closure();
      return at::scalar_tensor(model_.last_loss(), at::kDouble);
    });
    forget_casts();
    return loss;
  }
  double lr() const override { return optimizer_->param_groups().at(0).options().get_lr(); }
  void set_lr(double lr) override {
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(lr);
  }
  std::vector<torch::optim::OptimizerParamGroup>& param_groups() override {
    return optimizer_->param_groups();
  }
  void add_state(State& state, const std::string& prefix, const Names* stored) override {
    add_torch_state(*optimizer_, *model_.arena(), state, prefix, stored);
  }
  void resume(const State& state, const std::string& prefix) override {
    resume_torch_state(*optimizer_, *model_.arena(), state, prefix);
  }

 private:
  Model& model_;
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::set<size_t> mine_;  // the parameters it steps, by their places in the arena
};

}  // namespace

std::unique_ptr<OptimizerBackend> arena_optimizer(Model& model, std::unique_ptr<optim::Optimizer> optimizer) {
  return std::make_unique<ArenaOptimizer>(model, std::move(optimizer));
}

std::unique_ptr<OptimizerBackend> torch_optimizer(Model& model,
                                                  std::shared_ptr<torch::optim::Optimizer> optimizer) {
  return std::make_unique<TorchOptimizer>(model, std::move(optimizer));
}

}  // namespace stretto::lite
