#include "stretto/parallel/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"

namespace stretto::parallel {
namespace {

constexpr int64_t max_overflows = 10;  // in a row, at the least scale

void check(const LossScaleOptions& options) {
  const auto require = [](bool holds, const char* name, double value, const char* expected) {
    if (!holds) throw ConfigError("loss scale: {} is {}; expected {}", name, value, expected);
  };
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  require(positive(options.init_scale), "init_scale", options.init_scale, "a positive number");
  require(positive(options.min_scale) && options.min_scale <= options.init_scale, "min_scale",
          options.min_scale, "a positive number, at most init_scale");
  require(options.growth_factor > 1 && std::isfinite(options.growth_factor), "growth_factor",
          options.growth_factor, "a number above 1");
  require(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor", options.backoff_factor,
          "a number between 0 and 1");
  require(options.growth_interval >= 1, "growth_interval", static_cast<double>(options.growth_interval),
          "at least 1 step");
  require(options.hysteresis >= 1, "hysteresis", static_cast<double>(options.hysteresis),
          "at least 1 overflow");
}

}  // namespace

LossScale::LossScale(const std::optional<LossScaleOptions>& options) : options_(options) {
  if (!options_) return;
  check(*options_);
  scale_ = static_cast<float>(options_->init_scale);
}

void LossScale::count_finite() {
  if (!options_) return;
  at_least_ = 0;
  if (!options_->dynamic || ++finite_ < options_->growth_interval) return;
  finite_ = tolerated_ = 0;
  const auto grown = static_cast<float>(scale_ * options_->growth_factor);
  if (std::isfinite(grown)) scale_ = grown;
}

void LossScale::count_overflow() {
  ++skipped_;
  finite_ = 0;
  if (options_->dynamic && tolerated_ + 1 < options_->hysteresis) {
    ++tolerated_;
    return;
  }
  const auto least = static_cast<float>(options_->min_scale);
  if (options_->dynamic && scale_ > least) {
    scale_ = std::max(least, static_cast<float>(scale_ * options_->backoff_factor));
    return;
  }
  if (++at_least_ <= max_overflows) return;
  throw Error(
      "the gradients overflowed in {} steps in a row at a loss scale of {:g}, which {}; lower the learning rate, or use bf16, whose range is that of fp32",
      at_least_, scale_, options_->dynamic ? "is min_scale" : "is fixed");
}

void LossScale::add_state(State& state) const {
  if (!in_use() && skipped_ == 0) return;
  state.scalars["loss_scale"] = {{"scale", scale_},
                                 {"finite_steps", finite_},
                                 {"tolerated_overflows", tolerated_},
                                 {"overflows_at_least_scale", at_least_},
                                 {"skipped_steps", skipped_}};
}

void LossScale::resume(const State& state) {
  const auto found = state.scalars.find("loss_scale");
  if (found == state.scalars.end()) return;
  const nlohmann::json& before = found->second;
  before.at("skipped_steps").get_to(skipped_);
  if (!options_) return;
  if (options_->dynamic) before.at("scale").get_to(scale_);
  before.at("finite_steps").get_to(finite_);
  before.at("tolerated_overflows").get_to(tolerated_);
  before.at("overflows_at_least_scale").get_to(at_least_);
}

Tensor scaled_loss(const Tensor& loss, double factor) {
  if (factor == 1) return loss;
  return (loss.scalar_type() == at::kHalf ? loss.to(at::kFloat) : loss) * factor;
}

}  // namespace stretto::parallel
