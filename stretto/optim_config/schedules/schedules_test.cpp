#include "stretto/optim_config/schedules.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/optim_config/schedule_registry.h"
#include "stretto/settings/read.h"
#include "stretto/settings/yaml.h"

namespace stretto::optim {
namespace {

using testing::HasSubstr;

struct Section {
  settings::Choice scheduler = settings::Choice(schedule_kinds(), "LinearWithWarmup", "which schedule");
  void fields(settings::Fields& field) { field("scheduler", scheduler, "the schedule"); }
};

std::unique_ptr<Schedule> from_yaml(const std::string& section) {
  Section recipe;
  settings::read_fields(settings::fields_of(recipe), settings::parse_yaml("scheduler: " + section, "r.yaml"));
  return make_schedule(recipe.scheduler);
}

// DeepSpeed's warm-up: log(step) / log(num_warmup_steps) of the rate, 0 in the first two steps.
TEST(Schedules, AWarmupMayBeLogarithmic) {
  for (const std::string type : {"ConstantWithWarmup", "LinearWithWarmup", "CosineWithWarmup"}) {
    SCOPED_TRACE(type);
    const auto schedule = from_yaml("{type: " + type + ", num_warmup_steps: 100, warmup_type: log}");
    schedule->start({.lr = 2}, 1000);
    for (const auto& [step, lr] : {std::pair(0, 0.0), {1, 0.0}, {10, 1.0}, {50, 1.6989700043}, {100, 2.0}})
      EXPECT_NEAR(schedule->rates(step).lr, lr, 1e-9) << step;
  }
}

// Compares every schedule, made from its section in a recipe, with the rates of torch and transformers.
TEST(Schedules, EqualTheirNamesakes) {
  const auto cases = nlohmann::json::parse(
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/optim/schedules.json"));
  std::set<std::string> types;
  for (const auto& golden : cases) {
    nlohmann::json section = golden.at("options");
    section["type"] = golden.at("type");
    auto schedule = from_yaml(section.dump());
    EXPECT_EQ(schedule->name(), golden.at("type").get<std::string>());
    schedule->start({.lr = golden.at("lr"), .momentum = 0.9}, golden.at("total_steps"));
    ASSERT_EQ(golden.at("rates").size(), 200U);
    types.insert(schedule->name());
    for (size_t step = 0; step < golden.at("rates").size(); ++step) {
      const StepRates rates = schedule->rates(static_cast<int64_t>(step));
      const auto& expected = golden.at("rates")[step];
      EXPECT_NEAR(rates.lr, expected[0].get<double>(), 1e-12) << section << " step " << step;
      ASSERT_EQ(rates.momentum.has_value(), !expected[1].is_null()) << section;
      if (rates.momentum) {
        EXPECT_NEAR(*rates.momentum, expected[1].get<double>(), 1e-12) << section << " step " << step;
      }
      const bool observes = golden.contains("metrics");
      if (observes && !golden.at("metrics")[step].is_null()) schedule->observe(golden.at("metrics")[step]);
      if (!observes && step != golden.at("rates").size() / 2) continue;
      // Schedules with a state are resumed after each step, others in the middle.
      auto resumed = from_yaml(section.dump());
      resumed->start({.lr = golden.at("lr"), .momentum = 0.9}, golden.at("total_steps"));
      const nlohmann::json state = schedule->state();
      EXPECT_EQ(observes, !state.is_null()) << section;
      if (observes) resumed->resume(nlohmann::json::parse(state.dump()));
      schedule = std::move(resumed);
    }
  }
  EXPECT_EQ(types.size() + 1, schedule_kinds().size()) << "all but AnnealOnPlateau, which is Flair's";
}

// Expected rates are those of transformers' get_cosine_with_min_lr_schedule_with_warmup.
TEST(Schedules, CosineToALowestRate) {
  const auto schedule = from_yaml("{type: CosineWithWarmup, num_warmup_steps: 10, min_lr_rate: 0.1}");
  schedule->start({.lr = 2}, 110);
  EXPECT_DOUBLE_EQ(schedule->rates(5).lr, 1);
  EXPECT_DOUBLE_EQ(schedule->rates(60).lr, 2 * (0.5 * 0.9 + 0.1));
  EXPECT_NEAR(schedule->rates(110).lr, 0.2, 1e-12);
}

// Expected rates are those of Megatron's cosine, which NeMo's CosineAnnealing is with constant_steps: the
// cosine ends before them.
TEST(Schedules, CosineWithConstantStepsAtItsEnd) {
  const auto schedule =
      from_yaml("{type: CosineWithWarmup, num_warmup_steps: 10, constant_steps: 20, min_lr: 0.2}");
  schedule->start({.lr = 2}, 110);
  EXPECT_EQ(schedule->rates(0).lr, 0);
  EXPECT_DOUBLE_EQ(schedule->rates(5).lr, 1);
  EXPECT_DOUBLE_EQ(schedule->rates(10).lr, 2);
  EXPECT_DOUBLE_EQ(schedule->rates(50).lr, 0.2 + 0.5 * 1.8);
  for (const int64_t step : {90, 91, 109, 110, 500})
    EXPECT_NEAR(schedule->rates(step).lr, 0.2, 1e-15) << step;
}

// Expected rates are those of NeMo's CosineAnnealing: (step + 1) / (warm-up + 1) while it rises.
TEST(Schedules, CosineWhoseFirstRateIsNotZero) {
  const auto schedule =
      from_yaml("{type: CosineWithWarmup, num_warmup_steps: 4, warmup_start: 0.2, min_lr: 0.5}");
  schedule->start({.lr = 1}, 104);
  for (const int64_t step : {0, 1, 2, 3, 4})
    EXPECT_NEAR(schedule->rates(step).lr, static_cast<double>(step + 1) / 5, 1e-15) << step;
  EXPECT_DOUBLE_EQ(schedule->rates(54).lr, 0.75);
  EXPECT_DOUBLE_EQ(schedule->rates(104).lr, 0.5);
}

TEST(Schedules, CosineRefusesLowestRatesAndPartsThatDoNotFit) {
  const auto start = [](const std::string& settings) {
    return [settings] { from_yaml("{type: CosineWithWarmup, " + settings + "}")->start({.lr = 0.1}, 100); };
  };
  EXPECT_THAT(message_of<ConfigError>(start("min_lr: 0.2")), HasSubstr("min_lr is 0.2, above"));
  EXPECT_THAT(message_of<ConfigError>(start("min_lr: 0.01, min_lr_rate: 0.1")), HasSubstr("set twice"));
  EXPECT_THAT(message_of<ConfigError>(start("num_warmup_steps: 60, constant_steps: 41")),
              HasSubstr("longer than the 100 steps"));
  EXPECT_NO_THROW(start("num_warmup_steps: 60, constant_steps: 40, min_lr: 0.1")());
}

// patience evaluations without improvement are tolerated, initial_extra_patience more before the first
// reduction.
TEST(Schedules, AnnealOnPlateauIsFlairs) {
  const auto schedule = from_yaml(
      "{type: AnnealOnPlateau, patience: 1, initial_extra_patience: 2, min_learning_rate: 0.2, mode: max}");
  schedule->start({.lr = 1}, 100);
  std::vector<double> rates;
  for (const double metric : {0.5, 0.5, 0.4, 0.5, 0.3, 0.3, 0.3, 0.50001, 0.2, 0.2, 0.2, 0.2}) {
    schedule->observe(metric);
    rates.push_back(schedule->rates(0).lr);
  }
  EXPECT_THAT(rates, testing::ElementsAre(1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.0625));
  EXPECT_EQ(schedule->end_reason(), "the learning rate, 0.0625, is below scheduler.min_learning_rate, 0.2");
  schedule->start({.lr = 1}, 100);
  EXPECT_EQ(schedule->end_reason(), "");
}

// Rates and counts are those of flair.training_utils.AnnealOnPlateau (0.15.1) for the same pairs.
TEST(Schedules, AnnealOnPlateauBreaksTiesByTheLoss) {
  const std::string section = "{type: AnnealOnPlateau, patience: 0, min_learning_rate: 0, mode: max}";
  auto schedule = from_yaml(section);
  schedule->start({.lr = 1}, 100);
  std::vector<double> rates;
  const std::pair<double, double> evaluations[] = {{0.5, 3},   {0.5, 2}, {0.5, 2},  {0.4, 1},
                                                   {0.5, 1.5}, {0.6, 9}, {0.6, 8.5}};
  for (const auto& [metric, loss] : evaluations) {
    schedule->observe_loss(loss);
    schedule->observe(metric);
    rates.push_back(schedule->rates(0).lr);
    auto resumed = from_yaml(section);
    resumed->start({.lr = 1}, 100);
    resumed->resume(schedule->state());
    schedule = std::move(resumed);
  }
  EXPECT_THAT(rates, testing::ElementsAre(1, 1, 0.5, 0.25, 0.25, 0.25, 0.25));
  // States of earlier versions have no loss.
  nlohmann::json state = schedule->state();
  state.erase("best_loss");
  schedule->resume(state);
  schedule->observe_loss(1);
  schedule->observe(0.6);
  EXPECT_EQ(schedule->rates(0).lr, 0.125);
}

TEST(Schedules, NaNIsNotAnImprovement) {
  const auto schedule = from_yaml("{type: ReduceLROnPlateau, patience: 0, mode: min, factor: 0.5}");
  schedule->start({.lr = 1}, 100);
  schedule->observe(NAN);
  EXPECT_EQ(schedule->rates(0).lr, 0.5);
  schedule->observe(3);
  EXPECT_EQ(schedule->rates(0).lr, 0.5);
}

TEST(Schedules, ARatioRefersToTheStepsAtTheStart) {
  const auto schedule = linear_with_warmup({.warmup_ratio = 0.15});
  schedule->start({.lr = 1}, 20);
  EXPECT_EQ(schedule->rates(3).lr, 1);
  schedule->set_total_steps(37);
  EXPECT_EQ(schedule->rates(3).lr, 1);
  EXPECT_EQ(schedule->rates(20).lr, 0.5);
}

TEST(Schedules, MayEndBeforeTheRun) {
  const auto schedule = from_yaml("{warmup_ratio: 0.2, num_training_steps: 10}");
  schedule->start({.lr = 1}, 50);
  EXPECT_EQ(schedule->rates(2).lr, 1) << "the ratio is of the schedule's steps";
  EXPECT_EQ(schedule->rates(6).lr, 0.5);
  EXPECT_EQ(schedule->rates(30).lr, 0);
  schedule->set_total_steps(70);
  EXPECT_EQ(schedule->rates(6).lr, 0.5);
}

TEST(Schedules, ShortRunsHaveRatesToo) {
  for (const settings::Kind& kind : schedule_kinds()) {
    nlohmann::json section = {{"type", kind.type}};
    if (kind.type == "StepLR") section["step_size"] = 1;
    if (kind.type == "ExponentialLR") section["gamma"] = 0.5;
    if (kind.type == "CyclicLR" || kind.type == "OneCycleLR") section["max_lr"] = 1;
    if (kind.type == "OneCycleLR") section["pct_start"] = 0.5;
    if (kind.type == "CosineAnnealingWarmRestarts") section["T_0"] = 1;
    for (int64_t steps = 1; steps <= 4; ++steps) {
      const auto schedule = from_yaml(section.dump());
      schedule->start({.lr = 0.1, .momentum = 0.9}, steps);
      for (int64_t step = 0; step < steps; ++step)
        EXPECT_TRUE(std::isfinite(schedule->rates(step).lr)) << kind.type << " " << step << " of " << steps;
    }
  }
}

TEST(Schedules, InvalidSettingsAreRefused) {
  const auto refuses = [](const std::string& section, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { from_yaml(section)->start({.lr = 0.1}, 10); }),
                has_all(named...))
        << section;
  };
  refuses("{type: StepLR}", "StepLR: step_size: a value is required");
  refuses("{type: StepLR, step_size: 3, T_max: 4}", "scheduler.T_max does not apply",
          "scheduler.type: StepLR", "only with CosineAnnealingLR");
  refuses("{type: StepLr}", "\"StepLr\" is not one of");
  refuses("{type: StepLr}", "did you mean \"StepLR\"?");
  refuses("{num_warmup_steps: 3, warmup_ratio: 0.1}", "LinearWithWarmup: warmup_ratio: ", "set twice");
  refuses("{type: ConstantWithWarmup, num_training_steps: 3}", "scheduler.num_training_steps does not apply",
          "scheduler.type: ConstantWithWarmup");
  refuses("{num_training_steps: 0}", "scheduler.num_training_steps: 0 is out of range");
  refuses("{type: CyclicLR, max_lr: 1, mode: triangulr}", "did you mean \"triangular\"?");
  refuses("{type: CyclicLR, max_lr: 1}", "CyclicLR: cycle_momentum needs an optimizer with momentum");
  refuses("{type: OneCycleLR, max_lr: 1, cycle_momentum: false, total_steps: 9}", "OneCycleLR: ", "10 steps",
          "total_steps is 9");
  refuses("{type: PolynomialDecayWithWarmup, lr_end: 0.1}", "PolynomialDecayWithWarmup: lr_end is 0.1",
          "below the optimizer's lr, which is 0.1");
  refuses("{type: AnnealOnPlateau, min_learning_rate: 0.2}", "AnnealOnPlateau: min_learning_rate is 0.2",
          "above the optimizer's lr, which is 0.1");
  refuses("{type: ReduceLROnPlateau, factor: 1}", "scheduler.factor: 1 is out of range");
  refuses("{type: ReduceLROnPlateau, anneal_factor: 0.5}", "only with AnnealOnPlateau");
  EXPECT_THAT(message_of<ConfigError>([] { step_lr({.step_size = 0}); }),
              has_all("StepLR: step_size: 0 is out of range", "from 1 to 1000000000"));
}

// A user-defined schedule, which halves the rate whenever the metric has not improved. One registration makes
// it available to recipes.
struct PlateauOptions {
  double factor = 0.5;
  void fields(settings::Fields& field) { field("factor", factor, "of each reduction", settings::above(0)); }
  bool operator==(const PlateauOptions&) const = default;
};

class Plateau : public Schedule {
 public:
  explicit Plateau(const PlateauOptions& options) : options_(options) {}
  std::string name() const override { return "Plateau"; }
  StepRates rates(int64_t) const override { return {.lr = base().lr * scale_}; }
  void observe(double metric) override {
    if (metric >= best_) scale_ *= options_.factor;
    best_ = std::min(best_, metric);
  }
  nlohmann::json state() const override { return {{"scale", scale_}, {"best", best_}}; }
  void resume(const nlohmann::json& state) override {
    state.at("scale").get_to(scale_);
    state.at("best").get_to(best_);
  }

 private:
  PlateauOptions options_;
  double scale_ = 1, best_ = 1e300;
};

std::unique_ptr<Schedule> plateau(const PlateauOptions& options) {
  return std::make_unique<Plateau>(options);
}

TEST(Schedules, ProgramsCanAddTheirOwn) {
  register_schedule(schedule_kind("Plateau", "less where nothing improves", plateau));
  EXPECT_THROW(register_schedule(schedule_kind("Plateau", "again", plateau)), ConfigError);
  const auto schedule = from_yaml("{type: Plateau, factor: 0.1}");
  schedule->start({.lr = 1}, 100);
  for (const double metric : {3.0, 2.0, 2.0}) schedule->observe(metric);
  EXPECT_EQ(schedule->rates(5).lr, 0.1);
  const auto resumed = from_yaml("{type: Plateau, factor: 0.1}");
  resumed->start({.lr = 1}, 100);
  resumed->resume(schedule->state());
  EXPECT_EQ(resumed->rates(5).lr, 0.1);
}

}  // namespace
}  // namespace stretto::optim
