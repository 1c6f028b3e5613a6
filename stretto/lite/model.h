#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/parallel/data_parallel.h"

namespace stretto::lite {

struct ModelOptions {
  Precision precision = Precision::fp32;  // of the arena
  double bucket_bytes = 0;
  bool skips_unused = false;  // its optimizers leave parameters without a gradient alone (torch::optim)
};

// A module that was set up: its parameters in the arena, its gradients reduced over the ranks during backward. Between
// two backwards `parameter.grad()` is the mean over the global batch, as it would be on one rank.
class Model {
 public:
  // Collective: gives every rank rank 0's parameters and buffers. `number` counts the models of the program.
  Model(size_t number, torch::nn::Module& module, Group& group, const ModelOptions& options);

  size_t number() const { return number_; }
  const torch::nn::Module& module() const { return module_; }
  Arena* arena() { return arena_ ? &*arena_ : nullptr; }  // null where nothing is trained
  const ModuleTensors& tensors() const { return tensors_; }
  const ModelOptions& options() const { return options_; }
  bool holds(const Tensor& tensor) const { return engine_ && engine_->holds(tensor); }

  // --- one backward, in this order

  // Whether `loss` depends on this model. Then its gradients are made ready: dropped ones are zeros again; a parameter
  // that has left the arena is refused by name. Leaves of the graph that are not this model's are added to `others`.
  bool takes_part(const Tensor& loss, std::vector<Tensor>& others);
  // The gradients to come belong with those since the last backward that synchronised. `count`: what the loss, a sum, is
  // to be divided by; nothing where it is a mean.
  void extend_window(std::optional<double> count);
  void begin_backward(bool synchronises) { engine_->begin_backward(std::move(uses_), synchronises); }
  void end_backward(bool synchronises);
  void abort_backward() { engine_->abort_backward(); }
  // After a backward that synchronises: `count` is the divisor of all ranks' sums, `loss` the global mean.
  void finish(double count, bool has_unused, double loss);

  // Of the backwards since the last one that synchronised.
  double window_count() const { return window_.count.value_or(0); }
  bool has_unused() const;
  bool buffers_changed() const;

  // --- between backwards

  bool is_clean() const { return !window_.open && !reduced_; }  // gradients are zeros
  double last_loss() const { return last_loss_; }
  void zero_grad();
  void zero_grad(const std::set<size_t>& parameters);  // of these, by their places in the arena
  // Throws where gradients are missing, or were not yet synchronised.
  void require_gradients(const std::string& what) const;
  void gradients_were_taken();  // by an optimizer that leaves zeros

  // L2 norm over all parameters.
  double gradient_norm() const { return engine_->gradient_norm(); }
  std::string first_nonfinite() const { return engine_->first_nonfinite(); }

  void synchronise_buffers();  // every rank gets rank 0's
  void compare_replicas() const;

  // Lines for the start: sizes and types.
  std::string describe(const std::string& compute) const;

 private:
  struct Window {
    bool open = false;            // holds gradients that were not reduced
    std::optional<double> count;  // of sums; nothing for means
    uint64_t fingerprint = 0;     // of the parameters after its last backward
  };
  uint64_t fingerprint() const;
  void drop_unused();

  size_t number_;
  torch::nn::Module& module_;
  std::shared_ptr<torch::nn::Module>
      kept_;  // the same, where it is somebody's shared_ptr: it must outlive this
  Group& group_;
  ModelOptions options_;
  ModuleTensors tensors_;
  std::vector<Tensor> buffers_;
  std::vector<int64_t> buffer_versions_;
  std::optional<Arena> arena_;
  std::unique_ptr<DataParallel> engine_;
  std::vector<int> uses_;      // by the loss at hand
  std::vector<uint8_t> used_;  // since gradients were last zeroed
  Window window_;
  bool reduced_ = false;  // the buffer holds a gradient that is the same on all ranks
  double last_loss_ = 0;
  Tensor held_;  // such a gradient, put aside while another one is added up
};

}  // namespace stretto::lite
