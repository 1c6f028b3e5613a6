#include <random>

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/optim/optimizer.h"
#include "stretto/optim/schedule.h"

namespace stretto::optim {
namespace {

TEST(Schedule, LinearWithWarmupAsTransformers) {
  const ScheduleOptions options = {"LinearWithWarmup", 4, 20};
  EXPECT_EQ(schedule_factor(options, 0), 0);
  EXPECT_EQ(schedule_factor(options, 1), 0.25);
  EXPECT_EQ(schedule_factor(options, 4), 1);
  EXPECT_EQ(schedule_factor(options, 12), 0.5);
  EXPECT_EQ(schedule_factor(options, 20), 0);
  EXPECT_EQ(schedule_factor(options, 30), 0);
  EXPECT_EQ(schedule_factor({"Constant", 4, 20}, 0), 1);
  EXPECT_THROW(schedule_factor({"Cosine", 0, 1}, 0), ConfigError);
}

TEST(Optimizer, StepsItsRangesOnlyAndDecaysWhereTold) {
  const auto optimizer = sgd({.lr = 0.5, .weight_decay = 0.1});
  const Buffers buffers = {at::ones({6}), at::ones({6}), {}};
  optimizer->bind(buffers, {{0, 2, true}, {4, 5, false}, {5, 6, false, 0.1}}, plain_memory());
  optimizer->step(1.0, 2.0);
  EXPECT_TRUE(at::allclose(buffers.master, at::tensor({-0.05f, -0.05f, 1.0f, 1.0f, 0.0f, 0.9f}), 0, 1e-6));
  EXPECT_TRUE(at::equal(buffers.grad, at::tensor({0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f})));
  EXPECT_EQ(optimizer->steps_done(), 1);
}

// What a table and its slots hold after steps that touched some rows each.
struct TableRun {
  std::unique_ptr<Optimizer> optimizer = adamw({.lr = 0.1, .weight_decay = 0.01});
  Buffers buffers = {at::arange(80, at::kFloat) / 10, at::zeros({80}), at::zeros({80}, at::kBFloat16)};

  TableRun() {
    optimizer->bind(buffers, {{0, 16, true}, {16, 66, true, 0.5, 10}, {66, 80, false}}, plain_memory());
  }
  void set_gradient(const std::vector<int64_t>& rows, int64_t step) {
    buffers.grad.fill_(0.01 * static_cast<double>(step));
    Tensor table = buffers.grad.slice(0, 16, 66).view({5, 10});
    table.zero_();
    for (const int64_t row : rows) table[row].fill_(0.1 * static_cast<double>(row + step));
  }
};

TEST(Optimizer, RowsLeftForLaterEndAsIfSteppedEachTime) {
  TableRun dense, sparse;
  std::mt19937 random(1);
  for (int64_t step = 1; step <= 200; ++step) {  // longer than rows are ever left alone
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 4; ++row) {  // row 4 is never touched
      if (random() % 7 == 0) rows.push_back(row);
    }
    if (step % 17 == 0) {
      dense.optimizer->skip_step();
      sparse.optimizer->skip_step();
    }
    const double lr_factor = 1.0 / static_cast<double>(step);
    dense.set_gradient(rows, step);
    sparse.set_gradient(rows, step);
    sparse.optimizer->catch_up(0, rows);
    dense.optimizer->step(lr_factor, 0.5);
    sparse.optimizer->step(lr_factor, 0.5, {rows});
    ASSERT_EQ(sparse.buffers.grad.abs().max().item<double>(), 0);
    if (step % 60 != 50) continue;
    if (step == 110) {
      EXPECT_FALSE(at::equal(sparse.buffers.master, dense.buffers.master)) << "nothing was left for later";
    }
    sparse.optimizer->catch_up();
    ASSERT_TRUE(at::equal(sparse.buffers.master, dense.buffers.master)) << "step " << step;
    ASSERT_TRUE(at::equal(sparse.buffers.compute, dense.buffers.compute));
    for (size_t slot = 0; slot < 2; ++slot)
      ASSERT_TRUE(at::equal(sparse.optimizer->slots()[slot], dense.optimizer->slots()[slot]));
    if (step == 110) {  // a resumed run knows which rows have moments
      sparse.optimizer->resume(sparse.optimizer->steps_done());
    }
  }
}

TEST(Optimizer, RowsAreSteppedWithTheRestWhereItCannotLeaveThem) {
  const auto optimizer = sgd({.lr = 1});
  const Buffers buffers = {at::zeros({4}), at::ones({4}), {}};
  optimizer->bind(buffers, {{0, 4, true, 1, 2}}, plain_memory());
  const std::vector<int64_t> rows = {0, 1};
  optimizer->catch_up(0, rows);
  optimizer->step(1, 1, {rows});
  EXPECT_TRUE(at::equal(buffers.master, at::full({4}, -1.0f)));
}

TEST(Optimizer, MisuseIsRefused) {
  EXPECT_THROW(adamw({})->step(1, 1), Error);
  EXPECT_THROW(sgd({.nesterov = true}), ConfigError);
}

}  // namespace
}  // namespace stretto::optim
