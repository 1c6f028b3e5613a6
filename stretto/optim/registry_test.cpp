#include "stretto/optim/registry.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/optim/parts.h"
#include "stretto/settings/read.h"
#include "stretto/settings/yaml.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Section {
  settings::Choice optimizer = settings::Choice(optimizer_kinds(), "AdamW", "which optimizer");
  void fields(settings::Fields& field) { field("optimizer", optimizer, "the update rule"); }
};

std::unique_ptr<Optimizer> from_yaml(const std::string& section) {
  Section recipe;
  settings::read_fields(settings::fields_of(recipe), settings::parse_yaml("optimizer: " + section, "r.yaml"));
  return make_optimizer(recipe.optimizer);
}

// The weights and gradients of scripts/make_golden_optimizers.py, in buffers with padding between the
// parameters.
struct Run {
  std::vector<ParameterPiece> pieces;
  Buffers buffers;
  std::unique_ptr<Optimizer> optimizer;

  Run(std::unique_ptr<Optimizer> made, at::ScalarType type)
      : pieces{{.name = "w", .layout = {{4, 3}}, .begin = 0, .end = 12},
               {.name = "t", .layout = {{2, 3, 2}}, .begin = 16, .end = 28},
               {.name = "b", .layout = {{3}}, .begin = 32, .end = 35, .weight_decay = false}},
        buffers{at::zeros({48}, type), at::zeros({48}, type), {}},
        optimizer(std::move(made)) {
    fill(buffers.master, [](int64_t p, int64_t i) { return std::sin(1 + i + 10 * p); });
    // t is a wide matrix in the script's cases of Muon.
    if (optimizer->name() == "Muon") {
      pieces[1].layout = {{2, 6}};
      pieces[0].is_hidden_matrix = pieces[1].is_hidden_matrix = true;
    }
    optimizer->bind(buffers, pieces, plain_memory());
  }

  void fill(const Tensor& buffer, const std::function<double(int64_t, int64_t)>& value) const {
    for (size_t p = 0; p < pieces.size(); ++p) {
      for (int64_t i = 0; i < pieces[p].end - pieces[p].begin; ++i)
        buffer[pieces[p].begin + i] = value(static_cast<int64_t>(p), i);
    }
  }

  void step(const StepRates& rates, int64_t step) const {
    constexpr double scale = 0.25;
    fill(buffers.grad, [&](int64_t p, int64_t i) {
      return (i + step) % 5 == 0
                 ? 0
                 : std::cos((i + 1) * (step + 1) + p) * static_cast<double>(1 + step % 3) / scale;
    });
    optimizer->step(rates, scale);
    ASSERT_EQ(buffers.grad.ne(0).sum().item<int64_t>(), 0);
  }
};

State state_of(const Run& run) {
  State state;
  run.optimizer->add_state(state, "optimizer");
  return state;
}

// Resumes an interrupted run: saves the state and loads it into a new optimizer.
Run resumed(const Run& run, std::unique_ptr<Optimizer> made) {
  Run fresh(std::move(made), run.buffers.master.scalar_type());
  fresh.buffers.master.copy_(run.buffers.master);
  const State saved = state_of(run), target = state_of(fresh);
  for (size_t i = 0; i < saved.tensors.size(); ++i) {
    EXPECT_EQ(saved.tensors[i].name, target.tensors[i].name);
    EXPECT_EQ(saved.tensors[i].shape, target.tensors[i].shape);
    Tensor(target.tensors[i].pieces[0].data).copy_(saved.tensors[i].pieces[0].data);
  }
  fresh.optimizer->resume(saved, "optimizer");
  return fresh;
}

void compare(const nlohmann::json& golden, at::ScalarType type, double tolerance) {
  nlohmann::json section = golden.at("options");
  section["type"] = golden.at("type");
  // torch's defaults are compared; those of these types differ in lr.
  if (!section.contains("lr") && (section["type"] == "AdamW" || section["type"] == "SGD"))
    section["lr"] = golden.at("lr")[0];
  if (section["type"] == "SGD" && !section.contains("weight_decay")) section["weight_decay"] = 0;
  Run run(from_yaml(section.dump()), type);
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
// torch_optimizer, after 25 steps, including a save
// and a resume.
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

// Compares a table [4, 3] of which each step has gradients for some rows, given as rows or as a dense
// gradient with zeros in the others.
void compare_rows(const nlohmann::json& golden, at::ScalarType type, double tolerance, bool by_rows) {
  nlohmann::json section = golden.at("options");
  section["type"] = golden.at("type");
  const ParameterPiece table = {.name = "w", .layout = {{4, 3}}, .end = 12, .row_width = 3};
  Buffers buffers = {at::zeros({12}, type), at::zeros({12}, type), {}};
  for (int64_t i = 0; i < 12; ++i) buffers.master[i] = std::sin(1 + i);
  auto optimizer = from_yaml(section.dump());
  optimizer->bind(buffers, {table}, plain_memory());
  const auto steps = static_cast<int64_t>(golden.at("lr").size());
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 4; ++row) {
      if ((row + step) % 3 != 0) continue;
      rows.push_back(row);
      for (int64_t i = 3 * row; i < 3 * row + 3; ++i)
        buffers.grad[i] =
            (i + step) % 5 == 0 ? 0 : std::cos((i + 1) * (step + 1)) * static_cast<double>(1 + step % 3);
    }
    const Tensor before = buffers.master.clone();
    optimizer->step({.lr = golden.at("lr")[static_cast<size_t>(step)]}, 1,
                    by_rows ? TouchedRows{rows} : TouchedRows{});
    optimizer->catch_up();
    for (int64_t row = 0; row < 4; ++row) {
      if ((row + step) % 3 == 0) continue;
      EXPECT_TRUE(buffers.master.slice(0, 3 * row, 3 * row + 3).equal(before.slice(0, 3 * row, 3 * row + 3)));
    }
    EXPECT_EQ(buffers.grad.ne(0).sum().item<int64_t>(), 0);
    if (step != 13) continue;
    State saved, target;
    optimizer->add_state(saved, "optimizer");
    auto fresh = from_yaml(section.dump());
    buffers = {buffers.master.clone(), at::zeros({12}, type), {}};
    fresh->bind(buffers, {table}, plain_memory());
    fresh->add_state(target, "optimizer");
    for (size_t i = 0; i < saved.tensors.size(); ++i)
      Tensor(target.tensors[i].pieces[0].data).copy_(saved.tensors[i].pieces[0].data);
    fresh->resume(saved, "optimizer");
    optimizer = std::move(fresh);
  }
  const auto theirs = golden.at("final").at("w").get<std::vector<double>>();
  for (size_t i = 0; i < theirs.size(); ++i)
    EXPECT_NEAR(buffers.master[static_cast<int64_t>(i)].item<double>(), theirs[i], tolerance)
        << section << " " << i;
}

TEST(Optimizers, SparseAdamStepsRowsWithGradientsLikeTorch) {
  const auto cases = nlohmann::json::parse(
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/optim/optimizers.json"));
  int compared = 0;
  for (const auto& golden : cases) {
    if (!golden.contains("sparse")) continue;
    for (const bool by_rows : {true, false}) {
      compare_rows(golden, at::kDouble, 1e-10, by_rows);
      compare_rows(golden, at::kFloat, 1e-5, by_rows);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

TEST(Optimizers, SparseAdamLeavesATouchedRowWhoseGradientIsZero) {
  for (const bool by_rows : {true, false}) {
    const Buffers buffers = {at::ones({12}), at::zeros({12}), {}};
    auto optimizer = from_yaml("{type: SparseAdam}");
    optimizer->bind(buffers, {{.name = "w", .layout = {{4, 3}}, .end = 12, .row_width = 3}}, plain_memory());
    const std::vector<int64_t> rows = {0, 2};
    const TouchedRows touched = by_rows ? TouchedRows{rows} : TouchedRows{};
    buffers.grad.slice(0, 0, 3).fill_(1);
    buffers.grad[7] = 1;
    optimizer->step({.lr = 0.1}, 1, touched);
    const Tensor after = buffers.master.clone();
    EXPECT_TRUE(after.slice(0, 0, 3).lt(1).all().item<bool>());
    EXPECT_LT(after[7].item<float>(), 1);
    buffers.grad.slice(0, 0, 3).fill_(1);  // row 2 is touched but has a zero gradient
    optimizer->step({.lr = 0.1}, 1, touched);
    EXPECT_TRUE(buffers.master.slice(0, 3).equal(after.slice(0, 3)));
    EXPECT_TRUE(buffers.master.slice(0, 0, 3).lt(after.slice(0, 0, 3)).all().item<bool>());
  }
}

// The loss of the script's rosenbrock(), and its gradient / scale in the buffers.
Evaluation rosenbrock(const Run& run) {
  constexpr double scale = 0.25;
  std::vector<Tensor> values;
  for (const ParameterPiece& piece : run.pieces)
    values.push_back(run.buffers.master.slice(0, piece.begin, piece.end));
  const Tensor x = at::cat(values).detach().set_requires_grad(true);
  const Tensor left = x.slice(0, 0, -1), right = x.slice(0, 1);
  const Tensor loss = (10 * (right - left.square()).square() + (1 - left).square()).sum();
  loss.backward();
  int64_t begin = 0;
  for (const ParameterPiece& piece : run.pieces) {
    const int64_t size = piece.end - piece.begin;
    run.buffers.grad.slice(0, piece.begin, piece.end).copy_(x.grad().slice(0, begin, begin + size) / scale);
    begin += size;
  }
  return {loss.item<double>(), scale};
}

// Compares with torch, including a save and a resume.
void compare_lbfgs(const nlohmann::json& golden) {
  nlohmann::json section = golden.at("options");
  section["type"] = "LBFGS";
  Run run(from_yaml(section.dump()), at::kDouble);
  for (size_t step = 0; step < golden.at("losses").size(); ++step) {
    if (step == 2) run = resumed(run, from_yaml(section.dump()));
    const Evaluation first = rosenbrock(run);
    EXPECT_NEAR(first.loss, golden.at("losses")[step].get<double>(), 1e-8 * (1 + first.loss))
        << section << " step " << step;
    run.optimizer->step({.lr = golden.at("lr")[step]}, first, [&] { return rosenbrock(run); });
    EXPECT_EQ(run.buffers.grad.ne(0).sum().item<int64_t>(), 0);
  }
  for (const ParameterPiece& piece : run.pieces) {
    const auto theirs = golden.at("final").at(piece.name).get<std::vector<double>>();
    EXPECT_TRUE(at::allclose(run.buffers.master.slice(0, piece.begin, piece.end),
                             at::tensor(at::ArrayRef<double>(theirs), at::kDouble), 1e-7, 1e-8))
        << section << " " << piece.name;
  }
}

TEST(Optimizers, LbfgsEqualsTorch) {
  const auto cases = nlohmann::json::parse(
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/optim/optimizers.json"));
  int compared = 0;
  for (const auto& golden : cases) {
    if (!golden.contains("loss")) continue;
    compare_lbfgs(golden);
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

TEST(Optimizers, LbfgsNeedsTheLossAndOneRate) {
  const Buffers buffers = {at::zeros({4}), at::zeros({4}), {}};
  const auto optimizer = lbfgs({});
  optimizer->bind(buffers, {{.name = "w", .layout = {{4}}, .end = 4}}, plain_memory());
  EXPECT_THAT([&] { optimizer->step({.lr = 1}, 1); },
              ThrowsMessage<ConfigError>(HasSubstr("in Lite, pass step() a closure")));
  EXPECT_THAT(
      [&] {
        lbfgs({})->bind(buffers, {{.name = "w", .layout = {{4}}, .end = 4, .lr_factor = 0.5}},
                        plain_memory());
      },
      ThrowsMessage<ConfigError>(HasSubstr("a separate learning rate for w")));
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
  const auto refuses = [](const std::string& section, const std::string& message) {
    EXPECT_THAT([&] { from_yaml(section); }, ThrowsMessage<ConfigError>(HasSubstr(message))) << section;
  };
  refuses("{type: AdamX}", "\"AdamX\" is not one of AdamW, SGD");
  refuses("{type: adamw}", "did you mean \"AdamW\"?");
  refuses("{type: Rprop, weight_decay: 0.1}",
          "optimizer.weight_decay does not apply with optimizer.type: Rprop, only with AdamW or SGD");
  refuses("{type: Rprop, etas: [1.5, 1.2]}",
          "Rprop: etas: expected a factor below 1 and one above 1, found [1.5, 1.2]");
  refuses("{type: Adam, betas: [0.9, 1]}",
          "optimizer.betas: 1 is out of range; it must be at least 0 and below 1");
  refuses("{type: Muon, ns_coefficients: [3, -4]}", "Muon: ns_coefficients: expected 3 numbers, found 2");
  refuses("{type: Muon, lr: 0}", "optimizer.lr: 0 is out of range; it must be above 0");
  refuses("{type: SGD, nesterov: true}",
          "SGD: nesterov: Nesterov momentum needs a momentum above 0 and dampening 0; found 0 and 0");
  settings::Choice unknown(optimizer_kinds(), "Adamw", "");
  EXPECT_THAT([&] { make_optimizer(unknown); },
              ThrowsMessage<ConfigError>(HasSubstr("did you mean \"AdamW\"?")));
}

// Compares embeddings, heads, norms and biases with AdamW.
TEST(Optimizers, MuonIsAdamwForAllButHiddenMatrices) {
  const auto step = [](std::unique_ptr<Optimizer> optimizer) {
    const Buffers buffers = {at::linspace(-1, 1, 64), at::linspace(2, -1, 64),
                             at::zeros({64}, at::kBFloat16)};
    optimizer->bind(buffers, {{.name = "w", .layout = {{8, 8}}, .end = 64, .lr_factor = 0.5}},
                    plain_memory());
    optimizer->step({.lr = 0.1}, 0.5);
    return buffers.master;
  };
  const Tensor expected = step(adamw({.lr = 0.4, .weight_decay = 0.1, .betas = {0.8, 0.95}, .eps = 1e-6}));
  const auto muon_with = [](double adamw_lr) {
    return muon({.lr = 0.4, .adamw_lr = adamw_lr, .adamw_betas = {0.8, 0.95}, .adamw_eps = 1e-6});
  };
  EXPECT_TRUE(at::equal(step(muon_with(0.4)), expected));
  EXPECT_FALSE(at::equal(step(muon_with(0.2)), expected));
}

// Matmuls have bf16 operands if the compute weights are bf16. Singular values then differ from those of fp32
// by rounding only, for wide and for tall matrices.
TEST(Optimizers, MuonInHalfPrecisionOrthogonalizes) {
  for (const auto& [rows, columns] : {std::pair{16, 40}, std::pair{40, 16}}) {
    const auto update_in = [&, shape = std::vector<int64_t>{rows, columns}](at::ScalarType compute) {
      const int64_t size = shape[0] * shape[1];
      const auto generator = at::detail::createCPUGenerator(3);
      const Tensor compute_weights = compute == at::kFloat ? Tensor() : at::zeros({size}, compute);
      const Buffers buffers = {at::zeros({size}), at::randn({size}, generator), compute_weights};
      const auto optimizer = muon({.lr = 1, .weight_decay = 0});
      optimizer->bind(buffers, {{.name = "w", .layout = {shape}, .end = size, .is_hidden_matrix = true}},
                      plain_memory());
      optimizer->step({.lr = 1}, 1);
      if (compute_weights.defined()) {
        EXPECT_TRUE(at::equal(compute_weights, buffers.master.to(compute)));
      }
      return buffers.master.view(shape);
    };
    const Tensor full = update_in(at::kFloat), half = update_in(at::kBFloat16);
    EXPECT_FALSE(at::equal(half, full));
    EXPECT_LT((half - full).norm().item<double>(), 0.05 * full.norm().item<double>());
  }
}

TEST(Optimizers, MuonNeedsWholeMatrices) {
  const Buffers buffers = {at::zeros({16}), at::zeros({16}), {}};
  EXPECT_THAT(
      [&] {
        muon({})->bind(buffers,
                       {{.name = "w", .layout = {{4, 4}}, .first = 8, .end = 8, .is_hidden_matrix = true}},
                       plain_memory());
      },
      ThrowsMessage<Error>(
          HasSubstr("Muon: w of shape [4, 4] is split at element 8, but this optimizer needs")));
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
      const optim::Run run(from_yaml("{type: " + kind.name() + "}"), type);
      const int64_t parameter_bytes = (12 + 12 + 3) * c10::elementSize(type);
      EXPECT_GE(run.optimizer->state_bytes(), kind.state_tensors * parameter_bytes) << kind.name();
      EXPECT_EQ(run.optimizer->reevaluates(), kind.reevaluates) << kind.name();
    }
  }
}

}  // namespace
}  // namespace stretto::optim
