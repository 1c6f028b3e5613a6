#include "stretto/optim/lazy_rows.h"

#include <random>

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

// A table and its state after steps that touch some rows each.
struct TableRun {
  std::unique_ptr<Optimizer> optimizer = adamw({.lr = 0.1, .weight_decay = 0.01});
  Buffers buffers = {at::arange(80, at::kFloat) / 10, at::zeros({80}), at::zeros({80}, at::kBFloat16)};

  TableRun() {
    optimizer->bind(
        buffers,
        {{.name = "before", .layout = {{16}}, .end = 16},
         {.name = "table", .layout = {{5, 10}}, .begin = 16, .end = 66, .lr_factor = 0.5, .row_width = 10},
         {.name = "after", .layout = {{14}}, .begin = 66, .end = 80, .weight_decay = false}},
        plain_memory());
  }
  void set_gradient(const std::vector<int64_t>& rows, int64_t step) {
    buffers.grad.fill_(0.01 * static_cast<double>(step));
    Tensor table = buffers.grad.slice(0, 16, 66).view({5, 10});
    table.zero_();
    for (const int64_t row : rows) table[row].fill_(0.1 * static_cast<double>(row + step));
  }
  State state() const {
    State state;
    optimizer->add_state(state, "o");
    return state;
  }
};

void expect_equal(const TableRun& a, const TableRun& b, int64_t step) {
  EXPECT_TRUE(at::equal(a.buffers.master, b.buffers.master)) << "step " << step;
  EXPECT_TRUE(at::equal(a.buffers.compute, b.buffers.compute)) << "step " << step;
  const State ours = a.state(), theirs = b.state();
  for (size_t i = 0; i < ours.tensors.size(); ++i)
    EXPECT_TRUE(at::equal(ours.tensors[i].pieces[0].data, theirs.tensors[i].pieces[0].data))
        << "step " << step;
}

TEST(LazyRows, DeferredRowsEqualRowsOfEachStep) {
  TableRun dense, sparse;
  std::mt19937 random(1);
  for (int64_t step = 1; step <= 200; ++step) {  // more steps than rows are ever deferred
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 4; ++row) {  // row 4 is never touched
      if (random() % 7 == 0) rows.push_back(row);
    }
    if (step % 17 == 0) {
      dense.optimizer->skip_step();
      sparse.optimizer->skip_step();
    }
    const StepRates rates = {.lr = 0.1 / static_cast<double>(step),
                             .momentum = 0.9 - 0.002 * static_cast<double>(step)};
    dense.set_gradient(rows, step);
    sparse.set_gradient(rows, step);
    sparse.optimizer->catch_up(0, rows);
    dense.optimizer->step(rates, 0.5);
    sparse.optimizer->step(rates, 0.5, {rows});
    ASSERT_EQ(sparse.buffers.grad.abs().max().item<double>(), 0);
    if (step % 60 != 50) continue;
    if (step == 110) {
      EXPECT_FALSE(at::equal(sparse.buffers.master, dense.buffers.master)) << "nothing was left for later";
    }
    sparse.optimizer->catch_up();
    expect_equal(sparse, dense, step);
    if (step == 110) sparse.optimizer->resume(sparse.state(), "o");  // it must find which rows have moments
  }
}

TEST(LazyRows, RowsAreUpdatedWithTheRestIfTheyCannotBeDeferred) {
  const auto optimizer = sgd({.lr = 1});
  EXPECT_FALSE(optimizer->steps_rows());
  const Buffers buffers = {at::zeros({4}), at::ones({4}), {}};
  optimizer->bind(buffers, {{.name = "table", .layout = {{2, 2}}, .end = 4, .row_width = 2}}, plain_memory());
  const std::vector<int64_t> rows = {0, 1};
  optimizer->catch_up(0, rows);
  optimizer->step({.lr = 1}, 1, {rows});
  EXPECT_TRUE(at::equal(buffers.master, at::full({4}, -1.0f)));
}

TEST(LazyRows, RowsOfAllTablesMustBeGiven) {
  TableRun run;
  const std::vector<int64_t> rows = {0};
  EXPECT_THROW(run.optimizer->step({.lr = 1}, 1, {rows, rows}), Error);
}

}  // namespace
}  // namespace stretto::optim
