#pragma once

#include <map>
#include <string>
#include <vector>

#include "stretto/trainer/api/optimizer_plan.h"

namespace stretto::trainer {

// Several optimizers that the engine uses as one: each has the parameters whose names match its pattern, and
// each step is one of the selected optimizer.
class OptimizerSet : public optim::Optimizer {
 public:
  // Throws ConfigError for a name that is empty or taken, a null optimizer or schedule, and optimizers that
  // evaluate their batch several times.
  explicit OptimizerSet(std::vector<NamedOptimizer> parts);

  std::string name() const override;
  optim::Placement placement() const override;  // the strictest one
  int64_t state_bytes() const override;
  bool keeps_idle_rows() const override;  // whether any of them does

  // The number of the optimizer `name`. Throws ConfigError with the names if there is none; the message
  // begins with `call`, the function that got the name.
  size_t index(const std::string& name, const char* call) const;
  const NamedOptimizer& part(size_t index) const { return parts_[index]; }
  optim::Schedule& schedule(size_t index) { return *parts_[index].schedule; }
  size_t size() const { return parts_.size(); }
  // Throws ConfigError unless each optimizer has some of the parameters with these names, and each of them
  // has an optimizer.
  void require_parameters(const std::vector<std::string>& names) const;

  // Selects the optimizer that steps next; selected_has() returns whether it has a parameter. The caller
  // zeroes the gradients of all other parameters before a step.
  void select(size_t index) { selected_ = index; }
  bool selected_has(const std::string& parameter) const { return owner_of(parameter) == selected_; }

 private:
  void make_state(const Allocator& allocator) override;
  void update(const optim::StepRates& rates, double grad_scale, int64_t step,
              const optim::TouchedRows& touched) override;
  void add_piece_state(State&, const std::string&, const optim::ParameterPiece&) const override {}
  // The state of each optimizer and schedule, as "<prefix>.<name>".
  void add_parts(State& state, const std::string& prefix) const override;
  void resume_parts(const State& state, const std::string& prefix) override;
  size_t owner_of(const std::string& parameter) const;

  std::vector<NamedOptimizer> parts_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // of each optimizer in the buffers
  size_t selected_ = 0;
};

}  // namespace stretto::trainer
