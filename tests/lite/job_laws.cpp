#include "laws.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>

#include "stretto/base/files.h"
#include "stretto/kernels/matmul/matmul.h"
#include "stretto/nn/layers.h"

namespace stretto {
namespace {

// Buffers are rank 0's after each step; Dropout draws different numbers on each rank.
void buffers_and_dropout(const LiteOptions& options, const std::string&) {
  Lite lite(options);
  auto norm = std::make_shared<torch::nn::BatchNorm1dImpl>(3);
  torch::nn::Sequential net(torch::nn::BatchNorm1d(norm), torch::nn::Dropout(0.5));
  auto [model, optimizer] = lite.setup(net, stretto::optim::sgd({}));
  std::vector<Tensor> batches = {at::randn({8, 3}, at::detail::createCPUGenerator(1)),
                                 at::randn({6, 3}, at::detail::createCPUGenerator(2))};
  for (auto& batch : lite.setup(batches)) {
    lite.backward(model->forward(batch).square().mean());
    optimizer.step();
  }
  const Tensor all = lite.all_gather(norm->running_mean);
  for (int rank = 1; rank < lite.world_size(); ++rank)
    expect(all[rank].equal(all[0]), "running means differ");
  const Tensor drawn = lite.all_gather(at::rand({20}));
  for (int rank = 1; rank < lite.world_size(); ++rank)
    expect(!drawn[rank].equal(drawn[0]), "equal random numbers");
}

void collectives(const LiteOptions& options, const std::string& folder) {
  Lite lite(options);
  const int ranks = lite.world_size(), rank = lite.global_rank();
  const Tensor own = at::full({2}, rank, at::kFloat);
  expect(lite.all_gather(own).sizes() == at::IntArrayRef({ranks, 2}), "all_gather's shape");
  expect(lite.all_reduce(own, ReduceOp::max)[0].item<float>() == static_cast<float>(ranks - 1), "max");
  expect(lite.all_reduce(static_cast<double>(rank)) == (ranks - 1) / 2.0, "the mean");
  expect(lite.broadcast(own, ranks - 1)[1].item<float>() == static_cast<float>(ranks - 1), "broadcast");
  expect(lite.broadcast(std::string("from ") + std::to_string(rank)) == "from 0", "broadcast of bytes");
  expect(own[0].item<float>() == static_cast<float>(rank), "a collective wrote to its argument");
  const auto file = std::filesystem::path(folder) / "ready";
  {
    const auto first = lite.rank_zero_first();
    if (lite.is_global_zero()) write_file_atomic(file, "");
    expect(std::filesystem::exists(file), "another rank went before rank 0");
  }
  lite.save_tensors(std::filesystem::path(folder) / "t.safetensors", {{"a", at::arange(3)}});
  expect(lite.load_tensors(std::filesystem::path(folder) / "t.safetensors").at("a").equal(at::arange(3)),
         "tensors");
}

// The matmul libraries are part of a checkpoint, as in the Trainer.
void products(const LiteOptions& options, const std::string& folder) {
  using enum kernels::MatmulLibrary;
  const bool has_onednn = kernels::is_usable(onednn, kernels::MatmulRole::forward, at::kFloat);
  const kernels::MatmulLibrary wanted = has_onednn ? onednn : aten;
  const auto in_use = [] { return kernels::matmul_in_use(at::kFloat)[kernels::MatmulRole::forward]; };
  for (const bool first : {true, false}) {
    LiteOptions own = options;
    own.products = first ? name_of(wanted) : "auto";
    Lite lite(own);
    auto [model, optimizer] =
        lite.setup(std::make_shared<nn::Linear>(8, 8), stretto::optim::sgd({.lr = 0.1}));
    expect(in_use() == (first ? wanted : aten), "setup did not choose the products");
    if (first) {
      lite.save(folder, {.step = 1});
    } else {
      lite.load(folder);
      expect(in_use() == wanted, "load did not take over the products");
    }
  }
}

}  // namespace

Laws job_laws() {
  return {{"buffers_and_dropout", buffers_and_dropout}, {"collectives", collectives}, {"products", products}};
}

}  // namespace stretto
