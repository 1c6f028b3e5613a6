#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct LbfgsOptions {
  double lr = 1;
  int64_t max_iter = 20;
  std::optional<int64_t> max_eval = std::nullopt;  // max_iter x 5 / 4
  double tolerance_grad = 1e-7;
  double tolerance_change = 1e-9;
  int64_t history_size = 100;
  std::string line_search_fn = "none";

  void fields(settings::Fields& field);
  bool operator==(const LbfgsOptions&) const = default;
};

}  // namespace stretto::optim
