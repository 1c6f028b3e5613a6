#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/optim/optimizer_fixture.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

using testing::HasSubstr;

// The loss of the script's rosenbrock(), and its gradient / scale in the buffers.
Evaluation rosenbrock(const OptimizerRun& run) {
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
  OptimizerRun run(from_yaml(section.dump()), at::kDouble);
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
  EXPECT_THAT(message_of<ConfigError>([&] { optimizer->step({.lr = 1}, 1); }),
              HasSubstr("in Lite, pass step() a closure"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                lbfgs({})->bind(buffers, {{.name = "w", .layout = {{4}}, .end = 4, .lr_factor = 0.5}},
                                plain_memory());
              }),
              HasSubstr("a separate learning rate for w"));
}

}  // namespace
}  // namespace stretto::optim
