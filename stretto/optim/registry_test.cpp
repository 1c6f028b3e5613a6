#include "stretto/optim/registry.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/optim/optimizer_fixture.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/optim/parts.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

using testing::HasSubstr;

void compare(const nlohmann::json& golden, at::ScalarType type, double tolerance) {
  nlohmann::json section = golden.at("options");
  section["type"] = golden.at("type");
  // torch's defaults are compared; those of these types differ in lr.
  if (!section.contains("lr") && (section["type"] == "AdamW" || section["type"] == "SGD"))
    section["lr"] = golden.at("lr")[0];
  if (section["type"] == "SGD" && !section.contains("weight_decay")) section["weight_decay"] = 0;
  OptimizerRun run(from_yaml(section.dump()), type);
  EXPECT_EQ(run.optimizer->name(), golden.at("type").get<std::string>());
  const auto steps = static_cast<int64_t>(golden.at("lr").size());
  for (int64_t step = 0; step < steps; ++step) {
    StepRates rates = {.lr = golden.at("lr")[static_cast<size_t>(step)]};
    if (!golden.at("momentum").is_null()) rates.momentum = golden.at("momentum")[static_cast<size_t>(step)];
    if (step == 13) run = resumed(run, from_yaml(section.dump()));
    run.step(rates, step);
  }
  for (const ParameterPiece& piece : run.pieces) {
    const Tensor ours = run.buffers.master.slice(0, piece.begin, piece.end);
    const auto theirs = golden.at("final").at(piece.name).get<std::vector<double>>();
    for (size_t i = 0; i < theirs.size(); ++i) {
      const double value = ours[static_cast<int64_t>(i)].item<double>();
      EXPECT_NEAR(value, theirs[i], tolerance * std::max(1.0, std::abs(theirs[i])))
          << section << " " << golden.at("momentum") << " " << piece.name << "[" << i << "]";
    }
  }
}

// Compares every optimizer, made from its section in a recipe, with torch, and Lamb with timm and
// torch_optimizer, after 25 steps, including a save and a resume.
TEST(Optimizers, EqualTorch) {
  const auto cases = nlohmann::json::parse(
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/optim/optimizers.json"));
  for (const auto& golden : cases) {
    if (golden.contains("sparse") || golden.contains("loss")) continue;
    compare(golden, at::kDouble, 1e-10);
    compare(golden, at::kFloat, 1e-4);
  }
}

// The norm of the weights is 5. The first step's direction is (1, 1, ...), whose norm is 2.
TEST(Optimizers, LambLimitsItsTrustRatio) {
  const auto step_of = [](const std::string& limits, double scale) {
    const Tensor weights = at::tensor({1.0, 2.0, 2.0, 4.0}, at::kDouble) * scale;
    const Buffers buffers = {weights.clone(), at::ones({4}, at::kDouble), {}};
    auto optimizer = from_yaml("{type: Lamb, eps: 0" + limits + "}");
    optimizer->bind(buffers, {{.name = "w", .layout = {{4}}, .end = 4}}, plain_memory());
    optimizer->step({.lr = 1}, 3);
    return (weights - buffers.master).mean().item<double>();
  };
  EXPECT_NEAR(step_of("", 1), 2.5, 1e-12);
  EXPECT_NEAR(step_of("", 100), 10, 1e-12);
  EXPECT_NEAR(step_of("", 1e-4), 0.01, 1e-12);
  EXPECT_NEAR(step_of(", max_coeff: 2, min_coeff: 1.5", 1), 2, 1e-12);
  EXPECT_NEAR(step_of(", max_coeff: 2, min_coeff: 1.5", 0.1), 1.5, 1e-12);
  EXPECT_NEAR(step_of("", 0), 1, 1e-12) << "tensors of zeros have the ratio 1";
}

// Tensors that do not fit into one part of the cache have one trust ratio, and a bf16 copy.
TEST(Optimizers, LambStepsLargeTensorsAsOne) {
  const int64_t size = 100'000;
  const Tensor weights = at::sin(at::arange(size, at::kDouble)),
               grads = at::cos(at::arange(size, at::kDouble));
  const Buffers buffers = {weights.clone(), grads.clone(), at::zeros({size}, at::kBFloat16)};
  auto optimizer = from_yaml("{type: Lamb, weight_decay: 0.1}");
  optimizer->bind(buffers, {{.name = "w", .layout = {{size}}, .end = size}}, plain_memory());
  optimizer->step({.lr = 0.1}, 1);
  const Tensor direction = grads / (grads.abs() + 1e-8) + 0.1 * weights;
  const Tensor expected = weights - 0.1 * direction * (weights.norm() / direction.norm());
  EXPECT_TRUE(at::allclose(buffers.master, expected, 1e-12, 1e-12));
  EXPECT_TRUE(buffers.compute.equal(buffers.master.to(at::kBFloat16)));
  EXPECT_EQ(buffers.grad.ne(0).sum().item<int64_t>(), 0);
  EXPECT_EQ(optimizer->state_bytes(), 2 * size * 8);
}

TEST(Optimizers, WriteTheComputeCopy) {
  for (const settings::Kind& kind : optimizer_kinds()) {
    const auto optimizer = from_yaml("{type: " + kind.type + ", lr: 0.1}");
    const Buffers buffers = {at::linspace(-1, 1, 64), at::ones({64}), at::zeros({64}, at::kHalf)};
    optimizer->bind(buffers, {{.name = "w", .layout = {{8, 8}}, .end = 64}}, plain_memory());
    optimizer->reevaluates() ? optimizer->step({.lr = 0.1}, {.loss = 1},
                                               [&] {
                                                 Tensor(buffers.grad).fill_(1);
                                                 return Evaluation{.loss = 1};
                                               })
                             : optimizer->step({.lr = 0.1}, 1);
    EXPECT_TRUE(at::equal(buffers.compute, buffers.master.to(at::kHalf))) << kind.type;
    EXPECT_FALSE(at::equal(buffers.master, at::linspace(-1, 1, 64))) << kind.type;
  }
}

TEST(Optimizers, InvalidSettingsAreRefused) {
  const auto refuses = [](const std::string& section, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { from_yaml(section); }), has_all(named...)) << section;
  };
  refuses("{type: AdamX}", "\"AdamX\" is not one of AdamW, SGD");
  refuses("{type: adamw}", "did you mean \"AdamW\"?");
  refuses("{type: Rprop, weight_decay: 0.1}", "optimizer.weight_decay does not apply",
          "optimizer.type: Rprop", "only with AdamW or SGD");
  refuses("{type: Rprop, etas: [1.5, 1.2]}", "Rprop: etas: ", "below 1 and one above 1", "found [1.5, 1.2]");
  refuses("{type: Adam, betas: [0.9, 1]}", "optimizer.betas: 1 is out of range", "at least 0 and below 1");
  refuses("{type: Muon, ns_coefficients: [3, -4]}", "Muon: ns_coefficients: expected 3 numbers, found 2");
  refuses("{type: Muon, lr: 0}", "optimizer.lr: 0 is out of range", "above 0");
  refuses("{type: SGD, nesterov: true}", "SGD: nesterov: ", "a momentum above 0 and dampening 0",
          "found 0 and 0");
  settings::Choice unknown(optimizer_kinds(), "Adamw", "");
  EXPECT_THAT(message_of<ConfigError>([&] { make_optimizer(unknown); }),
              HasSubstr("did you mean \"AdamW\"?"));
}

// A user-defined optimizer (Chen et al. 2023): a struct, a rule and one registration.
struct LionOptions {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  void fields(settings::Fields& field) {
    field("lr", lr, "learning rate", settings::at_least(0));
    field("betas", betas, "of the update and of the average", settings::at_least(0).below(1));
  }
  bool operator==(const LionOptions&) const = default;
};

class Lion : public PartwiseOptimizer {
 public:
  explicit Lion(const LionOptions& options)
      : PartwiseOptimizer({options.lr, options.betas[0]}, /*weight_decay=*/0), options_(options) {}
  std::string name() const override { return "Lion"; }

 private:
  std::vector<std::string> state_names() const override { return {"exp_avg"}; }
  void step_part(const Part& part) override {
    Tensor exp_avg = part.state[0];
    Tensor(part.master).sub_(exp_avg.lerp(part.grad, 1 - options_.betas[0]).sign_(), part.lr);
    exp_avg.lerp_(part.grad, 1 - options_.betas[1]);
  }
  LionOptions options_;
};

std::unique_ptr<Optimizer> lion(const LionOptions& options) { return std::make_unique<Lion>(options); }

TEST(Optimizers, ProgramsCanAddTheirOwn) {
  register_optimizer("Lion", "steps by the sign of the momentum", lion);
  EXPECT_THROW(register_optimizer("Lion", "again", lion), ConfigError);
  const auto optimizer = from_yaml("{type: Lion, lr: 0.5, betas: [0.5, 0.9]}");
  const Buffers buffers = {at::zeros({4}), at::tensor({3.0f, -2.0f, 0.0f, 1.0f}), {}};
  optimizer->bind(buffers, {{.name = "w", .layout = {{4}}, .end = 4}}, plain_memory());
  optimizer->step({.lr = 0.5}, 1);
  EXPECT_TRUE(at::equal(buffers.master, at::tensor({-0.5f, 0.5f, 0.0f, -0.5f})));
}

// The launcher's memory estimate depends on state_tensors, and the check of a recipe on reevaluates.
TEST(Optimizers, HaveAtLeastTheStateOfTheirKind) {
  for (const OptimizerKind& kind : optimizers().entries()) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const optim::OptimizerRun run(from_yaml("{type: " + kind.name() + "}"), type);
      const int64_t parameter_bytes = (12 + 12 + 3) * c10::elementSize(type);
      EXPECT_GE(run.optimizer->state_bytes(), kind.state_tensors * parameter_bytes) << kind.name();
      EXPECT_EQ(run.optimizer->reevaluates(), kind.reevaluates) << kind.name();
    }
  }
}

}  // namespace
}  // namespace stretto::optim
