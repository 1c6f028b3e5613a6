#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples/llama/nxd_config.h"

// A Module in the shape of NeuronxDistributed's NeuronLTModule: manual optimization of a language model,
// whose model, optimizer and schedule are given as functions.
class NeuronLTModule : public stretto::Module {
 public:
  // Makes the model of a config.json for the ranks of each layer.
  using ModelFn = std::function<std::shared_ptr<stretto::TextModel>(
      const nlohmann::json& config, const stretto::nn::TensorParallel& ranks)>;
  using OptCls = std::function<std::unique_ptr<stretto::optim::Optimizer>()>;
  using SchedulerCls = std::function<std::unique_ptr<stretto::optim::Schedule>()>;

  struct Arguments {
    NxdConfig nxd_config;
    ModelFn model_fn;
    nlohmann::json model_args;  // config.json
    OptCls opt_cls;
    SchedulerCls scheduler_cls;
    int64_t logging_interval = 1;
  };

  // The model, optimizer and schedule are made here and in configure_optimizers; grad_accum_steps and
  // max_steps are those of the recipe.
  NeuronLTModule(Arguments arguments, const stretto::Run& run)
      : nxd_config_(std::move(arguments.nxd_config)),
        model_args_(std::move(arguments.model_args)),
        opt_cls_(std::move(arguments.opt_cls)),
        scheduler_cls_(std::move(arguments.scheduler_cls)),
        logging_interval_(arguments.logging_interval),
        is_main_rank_(run.mesh.world().rank() == 0),
        model_(initialize_parallel_model(nxd_config_, arguments.model_fn, model_args_, run)) {}

  bool automatic_optimization() const override { return false; }

  // forward, loss, backward; in the last micro-batch of a window: the sum over the data ranks, clipping,
  // step, zero_grad and the schedule.
  stretto::Loss training_step(const stretto::Batch& batch, stretto::StepContext& context) override {
    const stretto::CausalDecoder& decoder = *model_->capabilities().causal_decoder;
    const stretto::Tensor hidden = model_->forward(batch, context.forward);
    const stretto::Loss loss = decoder.loss(hidden, batch.at("labels"), context.forward);
    stretto::ManualOptimization& optimizer = context.manual();
    lr_ = optimizer.lr(optimizer_name);
    const double norm = optimizer.step(optimizer_name, loss);
    if (optimizer.updates()) global_norm_ = norm;
    return loss;
  }

  stretto::OptimizerPlan configure_optimizers(stretto::OptimizerPlan plan) override {
    plan.groups = get_param_groups_by_weight_decay();
    return initialize_parallel_optimizer(nxd_config_, opt_cls_, std::move(plan), scheduler_cls_);
  }

  // By default all parameters but biases and the weights of norms decay, by the type of their module.
  virtual std::vector<stretto::ParameterGroup> get_param_groups_by_weight_decay() { return {}; }

  void on_train_batch_end(const stretto::StepReport& report) override {
    print_step_ = report.step % logging_interval_ == 0 ? report.step : -1;
    if (!is_main_rank_ || print_step_ < 0) return;
    stretto::log::info("step {} loss is {}, lr is {}, throughput {:.1f} seq/s, norm {}", print_step_,
                       report.loss, lr_, static_cast<double>(report.samples) / report.seconds, global_norm_);
  }

  // A folder for Hugging Face's from_pretrained, without a tokenizer.
  void save(const std::filesystem::path& folder, const stretto::ListedSource& weights) const override {
    stretto::write_file_atomic(folder / "config.json", exported_config().dump(2) + "\n");
    stretto::save_safetensors(folder / "model.safetensors", weights);
  }
  nlohmann::json exported_config() const override { return model_->config_json(model_args_); }
  nlohmann::json model_config() const override { return model_args_; }

 protected:
  static constexpr const char* optimizer_name = "optimizer";

  // The model of model_fn, divided among the ranks of each layer. Its parameters have no memory until each
  // rank has read those that it owns.
  std::shared_ptr<stretto::TextModel> initialize_parallel_model(const NxdConfig& /*config*/,
                                                                const ModelFn& model_fn,
                                                                const nlohmann::json& model_args,
                                                                const stretto::Run& run) {
    auto net = model(model_fn(model_args, stretto::nn::TensorParallel::of(run.mesh.tensor_parallel())));
    parameters_from(stretto::initial_values(*net, static_cast<uint64_t>(run.recipe.training.seed)));
    return net;
  }

  // One optimizer for all parameters, whose state the strategy divides, with its schedule.
  static stretto::OptimizerPlan initialize_parallel_optimizer(const NxdConfig& /*config*/,
                                                              const OptCls& opt_cls,
                                                              stretto::OptimizerPlan plan,
                                                              const SchedulerCls& scheduler_cls) {
    plan.several.push_back({optimizer_name, "*", opt_cls(), scheduler_cls()});
    return plan;
  }

 private:
  NxdConfig nxd_config_;
  nlohmann::json model_args_;
  OptCls opt_cls_;
  SchedulerCls scheduler_cls_;
  int64_t logging_interval_;
  bool is_main_rank_;
  std::shared_ptr<stretto::TextModel> model_;
  double lr_ = 0, global_norm_ = 0;  // of the last step
  int64_t print_step_ = -1;          // -1: nothing is printed
};
