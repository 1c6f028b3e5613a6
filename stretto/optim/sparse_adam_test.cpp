#include <cmath>

#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/optim/optimizer_fixture.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

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

}  // namespace
}  // namespace stretto::optim
