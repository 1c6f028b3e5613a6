#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

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
  EXPECT_THAT(message_of([&] {
                muon({})->bind(
                    buffers,
                    {{.name = "w", .layout = {{4, 4}}, .first = 8, .end = 8, .is_hidden_matrix = true}},
                    plain_memory());
              }),
              has_all("Muon: w ", "[4, 4]", "split at element 8", "this optimizer needs"));
}

}  // namespace
}  // namespace stretto::optim
