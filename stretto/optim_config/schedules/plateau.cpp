#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stretto/base/error.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;
using settings::one_of;

namespace {

const char* const monitor_help = "metric of the evaluations to follow; unset: checkpoint.monitor";
const char* const mode_help =
    "whether a smaller or a larger value of the metric is better; auto: min for losses, max for scores";

}  // namespace

void ReduceLrOnPlateauOptions::fields(settings::Fields& field) {
  field("monitor", monitor, monitor_help);
  field("mode", mode, mode_help, one_of({"auto", "min", "max"}));
  field("factor", factor, "factor of each reduction", above(0).below(1));
  field("patience", patience, "evaluations without improvement that are tolerated before a reduction",
        at_least(0).at_most(1e9));
  field("threshold", threshold, "smallest change that counts as an improvement", at_least(0));
  field("threshold_mode", threshold_mode, "rel: the threshold is a part of the best value; abs: a difference",
        one_of({"rel", "abs"}));
  field("cooldown", cooldown, "evaluations after a reduction that are not counted", at_least(0).at_most(1e9));
  field("min_lr", min_lr, "the rate is not reduced below this", at_least(0));
  field("eps", eps, "smallest reduction that is applied", at_least(0));
}

void AnnealOnPlateauOptions::fields(settings::Fields& field) {
  field("monitor", monitor, monitor_help);
  field("mode", mode, mode_help, one_of({"auto", "min", "max"}));
  field("anneal_factor", anneal_factor, "factor of each reduction", above(0).below(1));
  field("patience", patience, "evaluations without improvement that are tolerated before a reduction",
        at_least(0).at_most(1e9));
  field("initial_extra_patience", initial_extra_patience, "additional patience before the first reduction",
        at_least(0).at_most(1e9));
  field("min_learning_rate", min_learning_rate, "the run ends when the rate falls below this", at_least(0));
}

namespace {

struct Rules {
  std::string type;
  std::string monitor;
  bool larger_is_better;
  double factor;
  int64_t patience;
  int64_t extra_patience = 0;  // additional patience before the first reduction
  double threshold = 0;
  bool relative = false;
  int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 0;
  double end_below = 0;  // the run ends below this rate
  bool loss_breaks_ties = false;
};

class Plateau : public Schedule {
 public:
  explicit Plateau(Rules rules) : rules_(std::move(rules)) {}
  std::string name() const override { return rules_.type; }
  std::string monitor() const override { return rules_.monitor; }
  StepRates rates(int64_t) const override { return {.lr = lr_}; }

  void observe_loss(double loss) override {
    if (rules_.loss_breaks_ties) loss_ = loss;
  }

  void observe(double metric) override {
    const auto loss = std::exchange(loss_, std::nullopt);
    if (improves(metric) || (best_ && metric == *best_ && loss && best_loss_ && *loss < *best_loss_)) {
      best_ = metric;
      best_loss_ = loss;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (cooling_ > 0) {
      --cooling_;
      bad_ = 0;
    }
    if (bad_ <= rules_.patience + (reductions_ == 0 ? rules_.extra_patience : 0)) return;
    const double reduced = std::max(lr_ * rules_.factor, rules_.min_lr);
    if (lr_ - reduced > rules_.eps) lr_ = reduced;
    ++reductions_;
    cooling_ = rules_.cooldown;
    bad_ = 0;
  }

  std::string end_reason() const override {
    if (lr_ >= rules_.end_below) return "";
    return fmt::format("the learning rate, {:g}, is below scheduler.min_learning_rate, {:g}", lr_,
                       rules_.end_below);
  }

  nlohmann::json state() const override {
    return {{"lr", lr_},
            {"best", best_ ? nlohmann::json(*best_) : nlohmann::json()},
            {"best_loss", best_loss_ ? nlohmann::json(*best_loss_) : nlohmann::json()},
            {"bad", bad_},
            {"cooling", cooling_},
            {"reductions", reductions_}};
  }
  void resume(const nlohmann::json& state) override {
    state.at("lr").get_to(lr_);
    best_.reset();
    if (!state.at("best").is_null()) best_ = state.at("best").get<double>();
    best_loss_.reset();
    if (const auto loss = state.find("best_loss"); loss != state.end() && !loss->is_null())
      best_loss_ = loss->get<double>();
    state.at("bad").get_to(bad_);
    state.at("cooling").get_to(cooling_);
    state.at("reductions").get_to(reductions_);
  }

 private:
  void on_start() override {
    lr_ = base().lr;
    if (lr_ >= rules_.end_below) return;
    throw ConfigError(
        "AnnealOnPlateau: min_learning_rate is {:g}, above the optimizer's lr, which is {:g}: the run would end at once; lower min_learning_rate",
        rules_.end_below, lr_);
  }

  // NaN is not an improvement; any other value is an improvement over no value.
  bool improves(double metric) const {
    if (std::isnan(metric)) return false;
    if (!best_) return true;
    const double margin = rules_.threshold * (rules_.relative ? *best_ : 1);
    return rules_.larger_is_better ? metric > *best_ + margin : metric < *best_ - margin;
  }

  Rules rules_;
  double lr_ = 0;
  std::optional<double> best_;
  std::optional<double> loss_, best_loss_;  // of the next evaluation and of the best one
  int64_t bad_ = 0;                         // evaluations without improvement
  int64_t cooling_ = 0;                     // number of further evaluations to ignore
  int64_t reductions_ = 0;
};

bool larger_is_better(const std::string& mode, const std::optional<std::string>& monitor) {
  if (mode != "auto") return mode == "max";
  return monitor && !monitor->ends_with("loss");
}

}  // namespace

std::unique_ptr<Schedule> reduce_lr_on_plateau(const ReduceLrOnPlateauOptions& options) {
  settings::check_settings(options, "ReduceLROnPlateau");
  return std::make_unique<Plateau>(Rules{.type = "ReduceLROnPlateau",
                                         .monitor = options.monitor.value_or(""),
                                         .larger_is_better = larger_is_better(options.mode, options.monitor),
                                         .factor = options.factor,
                                         .patience = options.patience,
                                         .threshold = options.threshold,
                                         .relative = options.threshold_mode == "rel",
                                         .cooldown = options.cooldown,
                                         .min_lr = options.min_lr,
                                         .eps = options.eps});
}

std::unique_ptr<Schedule> anneal_on_plateau(const AnnealOnPlateauOptions& options) {
  settings::check_settings(options, "AnnealOnPlateau");
  return std::make_unique<Plateau>(Rules{.type = "AnnealOnPlateau",
                                         .monitor = options.monitor.value_or(""),
                                         .larger_is_better = larger_is_better(options.mode, options.monitor),
                                         .factor = options.anneal_factor,
                                         .patience = options.patience,
                                         .extra_patience = options.initial_extra_patience,
                                         .end_below = options.min_learning_rate,
                                         .loss_breaks_ties = true});
}

}  // namespace stretto::optim
