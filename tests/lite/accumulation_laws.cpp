#include "laws.h"

namespace stretto {
namespace {

namespace optim = torch::optim;

// Tests sums with counts over several backwards per step: all samples of a step have the same weight.
void accumulated_sums(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo();
  std::vector<Rows> batches = make_rows({6, 3, 5, 1});
  optim::SGD plain_optimizer(parameters_of(plain), 0.1);
  auto [model, optimizer] = lite.setup(make_zoo(), stretto::optim::sgd({.lr = 0.1}));
  for (size_t i = 0; i < batches.size(); i += 2) {
    plain_optimizer.zero_grad();
    Loss first = summed_loss(plain, batches[i]), second = summed_loss(plain, batches[i + 1]);
    ((first.sum + second.sum) / (first.count + second.count)).backward();
    plain_optimizer.step();
  }
  bool last = false;
  for (auto& rows : lite.setup(batches)) {
    {
      const auto guard = lite.no_backward_sync(!last);
      lite.backward(summed_loss(model, rows));
    }
    if (last) {
      optimizer.step();
      optimizer.zero_grad();
    }
    last = !last;
  }
  expect_equal(*model, *plain);
}

// Means accumulate as in torch, with and without a reduction in between.
void accumulated_means(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  for (const bool exchanges : {false, true}) {
    Zoo plain = make_plain_zoo();
    std::vector<Rows> batches = make_rows({6, 3, 5, 1});
    optim::AdamW plain_optimizer(parameters_of(plain), 0.1);
    Zoo zoo = make_zoo();
    optim::AdamW zoo_optimizer(parameters_of(zoo), 0.1);
    auto [model, optimizer] = lite.setup(zoo, zoo_optimizer);
    for (size_t i = 0; i < batches.size(); ++i) {
      (mean_loss(plain, batches[i]) / 2).backward();
      if (i % 2 == 0) continue;
      plain_optimizer.step();
      plain_optimizer.zero_grad();
    }
    bool last = false;
    for (auto& rows : lite.setup(batches)) {
      {
        const auto guard = lite.no_backward_sync(!last && !exchanges);
        lite.backward(mean_loss(model, rows) / 2);
      }
      if (last) {
        optimizer.step();
        optimizer.zero_grad();
      }
      last = !last;
    }
    expect_equal(*model, *plain);
  }
}

}  // namespace

Laws accumulation_laws() {
  return {{"accumulated_sums", accumulated_sums}, {"accumulated_means", accumulated_means}};
}

}  // namespace stretto
