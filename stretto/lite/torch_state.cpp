#include "stretto/lite/torch_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "stretto/base/error.h"

namespace stretto::lite {
namespace {

using torch::optim::OptimizerParamState;

// The fields of torch's state for one parameter.
struct Fields {
  std::vector<std::pair<const char*, Tensor*>> tensors;
  int64_t* step = nullptr;
};

Fields fields(OptimizerParamState& state) {
  if (auto* adam = dynamic_cast<torch::optim::AdamParamState*>(&state)) {
    return {{{"exp_avg", &adam->exp_avg()},
             {"exp_avg_sq", &adam->exp_avg_sq()},
             {"max_exp_avg_sq", &adam->max_exp_avg_sq()}},
            &adam->step()};
  }
  if (auto* adamw = dynamic_cast<torch::optim::AdamWParamState*>(&state)) {
    return {{{"exp_avg", &adamw->exp_avg()},
             {"exp_avg_sq", &adamw->exp_avg_sq()},
             {"max_exp_avg_sq", &adamw->max_exp_avg_sq()}},
            &adamw->step()};
  }
  if (auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(&state))
    return {{{"momentum_buffer", &sgd->momentum_buffer()}}};
  if (auto* adagrad = dynamic_cast<torch::optim::AdagradParamState*>(&state))
    return {{{"sum", &adagrad->sum()}}, &adagrad->step()};
  if (auto* rmsprop = dynamic_cast<torch::optim::RMSpropParamState*>(&state)) {
    return {{{"square_avg", &rmsprop->square_avg()},
             {"momentum_buffer", &rmsprop->momentum_buffer()},
             {"grad_avg", &rmsprop->grad_avg()}},
            &rmsprop->step()};
  }
  throw ConfigError("the state of this torch optimizer is not supported");  // make_state() throws first
}

std::unique_ptr<OptimizerParamState> make_state(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const torch::optim::Adam*>(&optimizer) != nullptr)
    return std::make_unique<torch::optim::AdamParamState>();
  if (dynamic_cast<const torch::optim::AdamW*>(&optimizer) != nullptr)
    return std::make_unique<torch::optim::AdamWParamState>();
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer) != nullptr)
    return std::make_unique<torch::optim::SGDParamState>();
  if (dynamic_cast<const torch::optim::Adagrad*>(&optimizer) != nullptr)
    return std::make_unique<torch::optim::AdagradParamState>();
  if (dynamic_cast<const torch::optim::RMSprop*>(&optimizer) != nullptr)
    return std::make_unique<torch::optim::RMSpropParamState>();
  throw ConfigError(
      "save and load: the state of this torch optimizer is not supported; supported: Adagrad, Adam, AdamW, RMSprop, SGD, and stretto's own");
}

// Gives access to the counter, which is protected in torch.
struct SchedulerCounter : torch::optim::LRScheduler {
  static unsigned& of(torch::optim::LRScheduler& scheduler) {
    return scheduler.*(&SchedulerCounter::step_count_);
  }
};

}  // namespace

unsigned& scheduler_steps(torch::optim::LRScheduler& scheduler) { return SchedulerCounter::of(scheduler); }

void add_torch_state(torch::optim::Optimizer& optimizer,
                     const std::vector<parallel::NamedParameter>& parameters, State& state,
                     const std::string& prefix, const Holders& holders) {
  make_state(optimizer);  // throws early if it is not supported
  nlohmann::json steps = nlohmann::json::object();
  for (const auto& parameter : parameters) {
    const Tensor& tensor = parameter.tensor;
    const auto name = [&](const char* field) {
      return fmt::format("{}.{}.{}", prefix, field, parameter.name);
    };
    auto& entry = optimizer.state()[tensor.unsafeGetTensorImpl()];
    const bool fresh = entry == nullptr;
    if (fresh) entry = make_state(optimizer);
    const Fields all = fields(*entry);
    bool is_used = !fresh;
    for (const auto& [field, value] : all.tensors) {
      if (state.stored) {
        const bool wanted = state.stored->contains(name(field));
        *value = wanted ? at::zeros_like(tensor, at::MemoryFormat::Contiguous) : Tensor();
        is_used |= wanted;
      }
      if (!value->defined()) continue;
      *value = value->contiguous();
      state.tensors.push_back(
          part_entry(name(field), parameter.layout, /*first=*/0, value->view({-1}), holders));
    }
    if (!is_used) {  // torch creates the state with the parameter's first gradient
      optimizer.state().erase(tensor.unsafeGetTensorImpl());
    } else if (all.step != nullptr) {
      steps[parameter.name] = *all.step;
    }
  }
  nlohmann::json rates = nlohmann::json::array();
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  state.scalars[prefix] = {{"steps", steps}, {"lr", rates}};
}

void resume_torch_state(torch::optim::Optimizer& optimizer,
                        const std::vector<parallel::NamedParameter>& parameters, const State& state,
                        const std::string& prefix) {
  const nlohmann::json& saved = state.scalar(prefix);
  for (const auto& parameter : parameters) {
    const auto found = optimizer.state().find(parameter.tensor.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    if (int64_t* step = fields(*found->second).step) *step = saved.at("steps").at(parameter.name);
  }
  size_t index = 0;
  for (auto& group : optimizer.param_groups()) group.options().set_lr(saved.at("lr").at(index++));
}

}  // namespace stretto::lite
