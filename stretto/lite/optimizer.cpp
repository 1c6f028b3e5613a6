#include "stretto/lite/optimizer.h"

#include <map>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/lite/optimizer_backend.h"
#include "stretto/lite/torch_state.h"
#include "stretto/tensor/autocast.h"

namespace stretto::lite {
namespace {

// Whether the step must be skipped. Updates the scale.
bool skips(const Model& model, parallel::LossScale& scale) {
  if (!scale.in_use()) return false;
  if (!model.overflowed()) {
    scale.count_finite();
    return false;
  }
  const double before = scale.value();
  scale.count_overflow();
  log::info(
      "the gradients of model {} overflowed at loss scale {:g}; the step is skipped, the next one has {:g}",
      model.number(), before, scale.value());
  return true;
}

class EngineOptimizer : public OptimizerBackend {
 public:
  EngineOptimizer(Model& model, parallel::LossScale& scale)
      : model_(model), engine_(*model.engine()), scale_(scale), lr_(engine_.facts().base_rates.lr) {}

  void zero_grad() override {
    if (!model_.is_clean()) model_.zero_grad();
  }
  bool step() override {
    model_.require_gradients(engine_.facts().optimizer + ": step");
    if (skips(model_, scale_)) {
      model_.zero_grad();
      return false;
    }
    engine_.step({.rates = {.lr = lr_}});
    model_.gradients_were_zeroed();
    forget_casts();
    return true;
  }
  Tensor step(const std::function<Tensor()>& closure) override {
    closure();
    const Tensor loss = at::scalar_tensor(model_.last_loss(), at::kDouble);
    if (!engine_.facts().reevaluates) {
      step();
      return loss;
    }
    engine_.step({.rates = {.lr = lr_}, .loss = evaluation().loss, .again = [&] {
                    model_.gradients_were_zeroed();
                    forget_casts();  // the optimizer has changed the parameters
                    closure();
                    return evaluation();
                  }});
    model_.gradients_were_zeroed();
    forget_casts();
    return loss;
  }
  double lr() const override { return lr_; }
  void set_lr(double lr) override { lr_ = lr; }
  std::vector<torch::optim::OptimizerParamGroup>& param_groups() override {
    throw Error("{}: stretto's optimizers have no param_groups; use set_lr() to set the learning rate",
                engine_.facts().optimizer);
  }

  // Adds only the step; Engine::add_state() adds the rest.
  void add_state(State& state, const std::string& prefix) override { state.scalars[prefix]["lr"] = lr_; }
  void resume(const State& state, const std::string& prefix) override {
    state.scalar(prefix).at("lr").get_to(lr_);
  }

 private:
  // The evaluation of the closure that has just been called.
  optim::Evaluation evaluation() const {
    model_.require_gradients(engine_.facts().optimizer + ": step");
    return {.loss = model_.last_loss(), .grad_scale = 1};
  }

  Model& model_;
  parallel::Engine& engine_;
  parallel::LossScale& scale_;
  double lr_;
};

class TorchOptimizer : public OptimizerBackend {
 public:
  TorchOptimizer(Model& model, std::shared_ptr<torch::optim::Optimizer> optimizer, parallel::LossScale& scale)
      : model_(model), optimizer_(std::move(optimizer)), scale_(scale) {
    std::map<const void*, size_t> places;
    for (size_t i = 0; i < parameters().size(); ++i) places[parameters()[i].tensor.unsafeGetTensorImpl()] = i;
    for (const auto& group : optimizer_->param_groups()) {
      for (const Tensor& parameter : group.params()) {
        if (!parameter.requires_grad()) continue;
        const auto found = places.find(parameter.unsafeGetTensorImpl());
        if (found == places.end()) {
          throw ConfigError(
              "setup: the optimizer steps a tensor {} that is not a parameter of model {}; construct it from model->parameters(), after the last change to the model",
              describe(parameter), model.number());
        }
        indices_.insert(found->second);
      }
    }
  }

  void zero_grad() override {
    indices_.size() == parameters().size() ? model_.zero_grad() : model_.zero_grad(indices_);
  }
  bool step() override {
    model_.require_gradients("step");
    if (skips(model_, scale_)) return false;
    optimizer_->step();
    forget_casts();
    return true;
  }
  Tensor step(const std::function<Tensor()>& closure) override {
    if (scale_.in_use()) {
      throw Error(
          "step: a closure evaluates a batch several times with one loss scale, which precision fp16 does not support; call backward and step(), or use precision bf16");
    }
    const Tensor loss = optimizer_->step([&] {
      forget_casts();  // the optimizer has changed the parameters
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
  void add_state(State& state, const std::string& prefix) override {
    add_torch_state(*optimizer_, parameters(), state, prefix, model_.holders());
  }
  void resume(const State& state, const std::string& prefix) override {
    resume_torch_state(*optimizer_, parameters(), state, prefix);
  }

 private:
  const std::vector<parallel::NamedParameter>& parameters() const { return model_.tensors().trainable; }

  Model& model_;
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  parallel::LossScale& scale_;
  std::set<size_t> indices_;  // the parameters it steps, by their index in parameters()
};

}  // namespace

std::unique_ptr<OptimizerBackend> engine_optimizer(Model& model, parallel::LossScale& scale) {
  return std::make_unique<EngineOptimizer>(model, scale);
}

std::unique_ptr<OptimizerBackend> torch_optimizer(Model& model,
                                                  std::shared_ptr<torch::optim::Optimizer> optimizer,
                                                  parallel::LossScale& scale) {
  return std::make_unique<TorchOptimizer>(model, std::move(optimizer), scale);
}

}  // namespace stretto::lite

namespace stretto {

void LiteOptimizer::zero_grad() { backend_->zero_grad(); }
bool LiteOptimizer::step() { return backend_->step(); }
Tensor LiteOptimizer::step(const std::function<Tensor()>& closure) { return backend_->step(closure); }
double LiteOptimizer::lr() const { return backend_->lr(); }
void LiteOptimizer::set_lr(double lr) { backend_->set_lr(lr); }
std::vector<torch::optim::OptimizerParamGroup>& LiteOptimizer::param_groups() {
  return backend_->param_groups();
}

}  // namespace stretto
