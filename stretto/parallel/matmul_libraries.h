#pragma once

#include <filesystem>
#include <set>
#include <string>

#include <torch/nn/module.h>

#include "stretto/base/option_names.h"
#include "stretto/comm/group.h"
#include "stretto/kernels/matmul/choice.h"
#include "stretto/strategy/compute_options.h"
#include "stretto/tensor/state.h"

namespace stretto::parallel {

// The dtype of the operands of stretto::nn's matmuls in `precision` on CPU: fp32 for bf16 without bf16
// instructions.
at::ScalarType matmul_type(Precision precision);

struct MatmulOptions {
  Products requested = Products::automatic;  // or a library to be used wherever it is usable
  at::ScalarType dtype = at::kFloat;         // of the operands
  int64_t rows = 256;                        // rows of a matmul: tokens per micro-batch of a rank
  std::filesystem::path cache = {};  // the folder that caches measurements for later runs; empty: none
  bool few_rows = false;             // also measure the kernel for few rows, which generation computes
  bool reference = false;            // ATen's operators, regardless of the request
  kernels::MatmulTimer timer = {};   // for tests
  kernels::FewRowsTimer few_rows_timer = {};
  OptionNames names = {};
};

// The libraries that compute the matmuls of a run. With "auto", rank 0 times the usable ones on the shapes of
// the module's nn::Linear layers (kernels/matmul/choice.h), for about 0.1 s, and all ranks use its choice.
// The choice is cached per processor and version of the kernels, unless measurements contradicted each other,
// and is part of the run's state, so that rounding is the same in a resumed run.
class MatmulLibraries {
 public:
  // Chooses the libraries and sets those of the process (kernels/matmul/matmul.h). Collective.
  MatmulLibraries(const torch::nn::Module& module, const MatmulOptions& options, Group& group);
  // Chooses for a process that is not a rank.
  MatmulLibraries(const torch::nn::Module& module, const MatmulOptions& options);

  const kernels::MatmulChoice& choice() const { return choice_; }

  // "onednn (fp32, measured in 52 ms: 2.3x aten)".
  std::string describe() const;

  void add_state(State& state) const;
  // Uses the libraries of the run that saved `state`, unless another one is requested, and logs differences.
  void resume(const State& state);

 private:
  MatmulLibraries(const torch::nn::Module& module, const MatmulOptions& options, Group* group);
  void choose_for_all(const torch::nn::Module& module, Group* group);
  void choose_here(const std::vector<kernels::LinearMaps>& timed);
  kernels::FewRowsChoice choose_few_rows(const kernels::LinearMaps& map) const;
  bool is_usable(kernels::MatmulLibrary library, kernels::MatmulRole role) const;
  void apply() const { kernels::use_matmul(options_.dtype, choice_); }

  MatmulOptions options_;
  std::set<std::string> usable_;  // "role library" that all ranks can compute
  kernels::MatmulChoice choice_;
  std::string reason_;
};

}  // namespace stretto::parallel
