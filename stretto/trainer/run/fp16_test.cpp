// Tests runs in fp16: the loss scale, steps that overflow, and what a resumed run continues with.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/linear.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim_config/optimizers.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/records/records_fixture.h"
#include "stretto/trainer/records/summary.h"

namespace stretto::trainer {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t inputs = 6, hidden = 16;

const nlohmann::json& golden_fp16() {
  static const auto golden = nlohmann::json::parse(
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/trainer/fp16.json"));
  return golden;
}

// The samples of scripts/make_golden_fp16.py.
class GoldenSamples : public data::SampleDataset {
 public:
  GoldenSamples() : SampleDataset(std::ssize(golden_fp16().at("y"))) {}
  data::Sample sample(int64_t index) const override {
    const auto i = static_cast<size_t>(index);
    return {{"x", at::tensor(golden_fp16().at("x")[i].get<std::vector<float>>())},
            {"y", at::scalar_tensor(golden_fp16().at("y")[i].get<float>(), at::kFloat)}};
  }
};

void set_weights(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters()) {
    const auto values = golden_fp16().at("initial").at(item.key()).get<std::vector<float>>();
    item.value().copy_(at::tensor(values).view(item.value().sizes()));
  }
}

// Linear, tanh, Linear, with torch's names, of torch's layers or of stretto's.
template <class Layer>
struct TwoLayers : torch::nn::Module {
  TwoLayers() {
    register_module("0", first);
    register_module("2", second);
    set_weights(*this);
  }
  Tensor forward(const Tensor& x) { return second->forward(at::tanh(first->forward(x))).squeeze(1); }
  std::shared_ptr<Layer> first = std::make_shared<Layer>(inputs, hidden);
  std::shared_ptr<Layer> second = std::make_shared<Layer>(hidden, 1);
};

template <class Layer>
struct GoldenRegression : Module {
  GoldenRegression() : net(model(std::make_shared<TwoLayers<Layer>>())) {}
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor y = net->forward(batch.at("x").to(net->first->weight.scalar_type()));
    computed = y.scalar_type();
    return loss_of_mean(at::mse_loss(y.to(at::kFloat), batch.at("y")), batch.count);
  }
  std::shared_ptr<TwoLayers<Layer>> net;
  at::ScalarType computed = at::kFloat;
};
using TorchRegression = GoldenRegression<torch::nn::LinearImpl>;
using OwnRegression = GoldenRegression<nn::Linear>;

// The reports of all steps.
struct Reports : Callback {
  std::string name() const override { return "reports"; }
  void step_end(FitContext&, const StepReport& report) override { all.push_back(report); }
  std::vector<StepReport> all;

  std::vector<int64_t> skipped() const {
    std::vector<int64_t> steps;
    for (const StepReport& report : all)
      if (!report.taken) steps.push_back(report.step);
    return steps;
  }
  std::vector<double> scales() const {
    std::vector<double> scales;
    for (const StepReport& report : all) scales.push_back(report.loss_scale.value());
    return scales;
  }
  std::vector<double> losses() const {
    std::vector<double> losses;
    for (const StepReport& report : all) losses.push_back(report.loss);
    return losses;
  }
};

class Fp16Test : public ::testing::Test {
 protected:
  Fp16Test() {
    recipe_.training.precision = "fp16";
    recipe_.training.epochs = 6;
    recipe_.training.global_batch_size = golden_fp16().at("batch_size").get<int64_t>();
    recipe_.training.shuffle = false;
    recipe_.scheduler = optim::LinearWithWarmupOptions{.num_warmup_steps = 0};
    recipe_.track.progress = "off";
    recipe_.track.log_every = 1;
    recipe_.evaluate.every = "never";
    use(golden_fp16().at("cases")[0]);
  }
  void use(const nlohmann::json& golden) {
    const nlohmann::json& scaler = golden.at("scaler");
    scaler.at("init_scale").get_to(recipe_.loss_scale.init_scale);
    scaler.at("growth_factor").get_to(recipe_.loss_scale.growth_factor);
    scaler.at("growth_interval").get_to(recipe_.loss_scale.growth_interval);
    scaler.at("backoff_factor").get_to(recipe_.loss_scale.backoff_factor);
    golden.at("max_grad_norm").get_to(recipe_.training.max_grad_norm);
    const double lr = golden.at("lr");
    if (golden.at("optimizer") == "SGD") {
      recipe_.optimizer = optim::SgdOptions{.lr = lr, .momentum = 0.9};
    } else {
      recipe_.optimizer = optim::AdamwOptions{.lr = lr, .weight_decay = 0};
    }
  }
  template <class M>
  Reports fit(int ranks, const std::string& folder, const std::function<void(M&)>& look = {}) {
    recipe_.output = folder_.path() / folder;
    const GoldenSamples train;
    Reports of_first;
    comm::run_rank_threads(
        ranks, {},
        [&](Group& group) {
          M module;
          const Mesh mesh = make_mesh(recipe_, group);
          Trainer trainer(recipe_, mesh, at::kCPU);
          const auto reports = std::make_shared<Reports>();
          trainer.add(reports);
          const FitResult result = trainer.fit(module, train, nullptr);
          if (look) look(module);
          if (group.rank() != 0) return;
          of_first = *reports;
          if (!result.stopped) write_summary(recipe_, mesh, result);
        },
        backend_);
    return of_first;
  }
  NamedTensors saved() const {
    return SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  }
  // Compares the last run with torch.amp's.
  void expect_trajectory(const nlohmann::json& golden, const Reports& reports) const {
    ASSERT_EQ(reports.all.size(), golden.at("steps").size());
    int64_t skipped = 0;
    for (size_t i = 0; i < reports.all.size(); ++i) {
      const nlohmann::json& step = golden.at("steps")[i];
      const StepReport& report = reports.all[i];
      EXPECT_EQ(report.step, i + 1);
      EXPECT_EQ(report.loss_scale, step.at("scale").get<double>()) << "step " << i + 1;
      EXPECT_EQ(!report.taken, step.at("skipped").get<bool>()) << "step " << i + 1;
      EXPECT_NEAR(report.lr, step.at("lr").get<double>(), 1e-9) << "step " << i + 1;
      const double loss = step.at("loss");
      EXPECT_NEAR(report.loss, loss, 2e-3 * loss + 1e-4) << "step " << i + 1;
      skipped += !report.taken;
      EXPECT_EQ(report.skipped_steps, skipped);
    }
    EXPECT_GE(skipped, 4) << "the scale must overflow several times";
    const NamedTensors weights = saved();
    for (const auto& [name, values] : golden.at("final").items()) {
      const Tensor expected = at::tensor(values.get<std::vector<float>>());
      EXPECT_LT((weights.at(name).flatten() - expected).abs().max().item<double>(), 5e-3) << name;
    }
  }

  TempFolder folder_;
  Recipe recipe_;
  std::string backend_ = "shm";
};

TEST_F(Fp16Test, TheTrajectoryIsTorchs) {
  for (const nlohmann::json& golden : golden_fp16().at("cases")) {
    use(golden);
    const int ranks = golden.at("ranks");
    const auto strategies = ranks == 1 ? std::vector<std::string>{"ddp"}
                                       : std::vector<std::string>{"ddp", "zero1", "zero2", "fsdp"};
    for (const std::string& strategy : strategies) {
      recipe_.training.strategy = strategy;
      const std::string which =
          fmt::format("{}-{}-{}", golden.at("optimizer").get<std::string>(), strategy, ranks);
      SCOPED_TRACE(which);
      expect_trajectory(golden, fit<TorchRegression>(ranks, which, [](TorchRegression& module) {
                          EXPECT_EQ(module.computed, at::kHalf);
                        }));
    }
  }
}

// The weight gradients of stretto's layers are sums in fp32, so that an overflow depends on single rows only.
TEST_F(Fp16Test, AllStrategiesSkipTheSameSteps) {
  const Reports one =
      fit<OwnRegression>(1, "one", [](OwnRegression& module) { EXPECT_EQ(module.computed, at::kHalf); });
  EXPECT_GE(one.skipped().size(), 3U);
  struct Case {
    const char* strategy;
    int ranks;
    const char* backend;
  };
  for (const auto& [strategy, ranks, backend] :
       {Case{"ddp", 2, "shm"}, Case{"zero1", 2, "shm"}, Case{"zero2", 3, "shm"}, Case{"zero2", 2, "tcp"},
        Case{"fsdp", 2, "shm"}, Case{"fsdp", 2, "tcp"}, Case{"hsdp", 4, "tcp"}}) {
    SCOPED_TRACE(fmt::format("{} on {} ranks, {}", strategy, ranks, backend));
    recipe_.training.strategy = strategy;
    recipe_.training.dp_shard = std::string(strategy) == "hsdp" ? std::optional<int64_t>(2) : std::nullopt;
    backend_ = backend;
    const Reports several = fit<OwnRegression>(ranks, fmt::format("{}-{}-{}", strategy, ranks, backend));
    EXPECT_EQ(several.scales(), one.scales());
    EXPECT_EQ(several.skipped(), one.skipped());
    ASSERT_EQ(several.all.size(), one.all.size());
    for (size_t i = 0; i < one.all.size(); ++i)
      EXPECT_NEAR(several.all[i].loss, one.all[i].loss, 5e-3 * one.all[i].loss + 1e-4) << "step " << i + 1;
  }
}

TEST_F(Fp16Test, AResumedRunHasTheSameScalesAndLosses) {
  for (const char* strategy : {"ddp", "zero2"}) {
    SCOPED_TRACE(strategy);
    recipe_.training.strategy = strategy;
    recipe_.training.steps_this_run = std::nullopt;
    const Reports whole = fit<OwnRegression>(2, fmt::format("{}-whole", strategy));
    Reports parts;
    recipe_.training.steps_this_run = 7;
    while (parts.all.size() < whole.all.size()) {
      const Reports part = fit<OwnRegression>(2, fmt::format("{}-parts", strategy));
      ASSERT_FALSE(part.all.empty());
      parts.all.insert(parts.all.end(), part.all.begin(), part.all.end());
    }
    EXPECT_EQ(parts.scales(), whole.scales());
    EXPECT_EQ(parts.losses(), whole.losses());
    EXPECT_EQ(parts.all.back().skipped_steps, whole.all.back().skipped_steps);
  }
}

TEST_F(Fp16Test, RecordsAndTheSummaryCountSkippedSteps) {
  const Reports reports = fit<OwnRegression>(1, "run");
  std::vector<double> scales;
  const auto records = records_of(recipe_.output);
  for (const auto& record : records) scales.push_back(record.at("loss_scale"));
  EXPECT_EQ(scales, reports.scales());
  const auto skipped = std::ssize(reports.skipped());
  EXPECT_EQ(records.back().at("skipped_steps"), skipped);
  EXPECT_EQ(nlohmann::json::parse(read_file(recipe_.output / "summary.json")).at("skipped_steps"), skipped);
}

TEST_F(Fp16Test, AFixedScaleThatAlwaysOverflowsEndsTheRun) {
  recipe_.loss_scale.init_scale = 1e9;
  recipe_.loss_scale.dynamic = false;
  EXPECT_THAT(message_of([&] { fit<OwnRegression>(2, "fixed"); }),
              HasSubstr("overflowed in 11 steps in a row at a loss scale of 1e+09"));
}

struct LosesItsLoss : OwnRegression {
  Loss training_step(const Batch& batch, StepContext& context) override {
    Loss loss = OwnRegression::training_step(batch, context);
    if (context.step == 2) loss.sum = loss.sum * NAN;
    return loss;
  }
};

// A lower scale cannot help it.
TEST_F(Fp16Test, ALossThatIsNotFiniteFollowsOnNonfinite) {
  recipe_.loss_scale.init_scale = 1024;
  recipe_.loss_scale.growth_interval = 1000;
  EXPECT_THAT(message_of([&] { fit<LosesItsLoss>(1, "stops"); }),
              HasSubstr("step 3: the loss (nan) is not finite"));
  recipe_.training.on_nonfinite = "skip";
  const Reports reports = fit<LosesItsLoss>(2, "skips");
  EXPECT_THAT(reports.skipped(), Contains(3));
  EXPECT_EQ(reports.all[3].loss_scale, 1024) << "its scale";
  EXPECT_EQ(reports.all.back().skipped_steps, std::ssize(reports.skipped()) - 1) << "of overflows only";
}

// Steps one optimizer itself, in the same way as the Trainer.
struct ManualRegression : TorchRegression {
  bool automatic_optimization() const override { return false; }
  Loss training_step(const Batch& batch, StepContext& context) override {
    const Loss loss = TorchRegression::training_step(batch, context);
    const double norm = context.manual().step("all", loss);
    overflows += !std::isfinite(norm);
    return loss;
  }
  OptimizerPlan configure_optimizers(OptimizerPlan plan) override {
    plan.several.push_back({"all", "*", std::move(plan.optimizer), std::move(plan.schedule)});
    return plan;
  }
  int64_t overflows = 0;
};

TEST_F(Fp16Test, ManualOptimizationSkipsTheSameSteps) {
  for (const char* strategy : {"ddp", "zero2"}) {
    recipe_.training.strategy = strategy;
    const Reports automatic = fit<TorchRegression>(2, fmt::format("{}-automatic", strategy));
    const auto skipped = automatic.all.back().skipped_steps;
    EXPECT_GE(skipped, 3);
    const Reports manual =
        fit<ManualRegression>(2, fmt::format("{}-manual", strategy),
                              [&](ManualRegression& module) { EXPECT_EQ(module.overflows, skipped); });
    EXPECT_EQ(manual.scales(), automatic.scales());
    EXPECT_EQ(manual.losses(), automatic.losses());
    EXPECT_EQ(manual.all.back().skipped_steps, skipped);
  }
}

TEST_F(Fp16Test, OtherPrecisionsHaveNoScale) {
  recipe_.training.precision = "bf16";
  const Reports reports = fit<OwnRegression>(1, "bf16");
  for (const StepReport& report : reports.all) EXPECT_FALSE(report.loss_scale);
  EXPECT_THAT(reports.all, Each(::testing::Field(&StepReport::skipped_steps, 0)));
}

}  // namespace
}  // namespace stretto::trainer
