#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stretto/settings/fields.h"

namespace stretto::optim {

// The settings of each optimizer, with torch.optim's names and defaults; Lamb's are those of DeepSpeed. The
// files in optimizers/, one per optimizer, declare them.

struct AdamwOptions {
  double lr = 1e-3;
  double weight_decay = 0.01;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;

  void fields(settings::Fields& field);
  bool operator==(const AdamwOptions&) const = default;
};

struct SgdOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const SgdOptions&) const = default;
};

struct AdamOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool amsgrad = false;

  void fields(settings::Fields& field);
  bool operator==(const AdamOptions&) const = default;
};

struct AdadeltaOptions {
  double lr = 1;
  double weight_decay = 0;
  double rho = 0.9;
  double eps = 1e-6;

  void fields(settings::Fields& field);
  bool operator==(const AdadeltaOptions&) const = default;
};

struct AdagradOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double lr_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;

  void fields(settings::Fields& field);
  bool operator==(const AdagradOptions&) const = default;
};

struct AdamaxOptions {
  double lr = 2e-3;
  double weight_decay = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;

  void fields(settings::Fields& field);
  bool operator==(const AdamaxOptions&) const = default;
};

struct AdafactorOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double beta2_decay = -0.8;
  std::array<double, 2> eps = {0, 1e-3};  // if the first is 0: the machine epsilon of the master weights
  double d = 1;

  void fields(settings::Fields& field);
  bool operator==(const AdafactorOptions&) const = default;
};

// The settings that begin with adamw are for the parameters that are not matrices of hidden layers;
// torch.optim.Muon leaves these to a second optimizer.
struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::vector<double> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  std::string adjust_lr_fn = "original";
  std::optional<double> adamw_lr = std::nullopt;
  std::array<double, 2> adamw_betas = {0.9, 0.999};
  double adamw_eps = 1e-8;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const MuonOptions&) const = default;
};

struct LambOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  std::string bias_correction = "moments";  // or step, none
  double max_coeff = 10;
  double min_coeff = 0.01;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const LambOptions&) const = default;
};

struct AsgdOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;

  void fields(settings::Fields& field);
  bool operator==(const AsgdOptions&) const = default;
};

struct NadamOptions {
  double lr = 2e-3;
  double weight_decay = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;

  void fields(settings::Fields& field);
  bool operator==(const NadamOptions&) const = default;
};

struct RadamOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool decoupled_weight_decay = false;

  void fields(settings::Fields& field);
  bool operator==(const RadamOptions&) const = default;
};

struct RmspropOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;

  void fields(settings::Fields& field);
  bool operator==(const RmspropOptions&) const = default;
};

struct RpropOptions {
  double lr = 0.01;
  std::array<double, 2> etas = {0.5, 1.2};
  std::array<double, 2> step_sizes = {1e-6, 50};

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const RpropOptions&) const = default;
};

struct SparseAdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;

  void fields(settings::Fields& field);
  bool operator==(const SparseAdamOptions&) const = default;
};

struct LbfgsOptions {
  double lr = 1;
  int64_t max_iter = 20;
  std::optional<int64_t> max_eval = std::nullopt;  // nullopt: max_iter x 5 / 4
  double tolerance_grad = 1e-7;
  double tolerance_change = 1e-9;
  int64_t history_size = 100;
  std::string line_search_fn = "none";

  void fields(settings::Fields& field);
  bool operator==(const LbfgsOptions&) const = default;
};

}  // namespace stretto::optim
