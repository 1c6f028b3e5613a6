#include <numeric>

#include "laws.h"

namespace stretto {
namespace {

constexpr int64_t samples = 24, places = 3, width = 4, inner = 16;
constexpr nn::Context context = {.training = true, .key = 9};

// Sequences of `places` random vectors.
class Sequences : public data::Dataset {
 public:
  int64_t size() const override { return samples; }
  int32_t length_of(int64_t) const override { return places; }
  Batch pack(std::span<const int64_t> chosen) const override {
    Batch batch;
    batch.sample_ids.assign(chosen.begin(), chosen.end());
    batch.count = std::ssize(chosen);
    const Tensor ids = at::tensor(batch.sample_ids, at::kLong);
    batch.tensors["x"] = vectors_.index_select(0, ids).flatten(0, 1);
    batch.tensors["samples"] = ids.repeat_interleave(places);
    batch.tensors["position_ids"] = at::arange(places).repeat({batch.count});
    batch.tensors["cu_seqlens"] = at::arange(batch.count + 1) * places;
    return batch;
  }
  Batch all() const {
    std::vector<int64_t> chosen(samples);
    std::iota(chosen.begin(), chosen.end(), 0);
    return pack(chosen);
  }

 private:
  Tensor vectors_ = at::randn({samples, places, width}, at::detail::createCPUGenerator(2), at::kDouble);
};

// Two divided layers with dropout of a rank's columns between them, and of whole rows behind them.
struct Net : torch::nn::Module {
  explicit Net(const nn::TensorParallel& of) : ranks(of) {
    up = register_module("up", std::make_shared<nn::ColumnLinear>(width, inner, ranks));
    down = register_module("down", std::make_shared<nn::RowLinear>(inner, width, ranks));
  }
  Tensor forward(const Batch& batch) const {
    const nn::PackedLayout layout(batch);
    const Tensor columns = nn::activate(up->forward(batch.at("x")), nn::Activation::tanh);
    const Tensor kept = nn::dropout(columns, 0.5, /*site=*/0, layout, context, ranks.first(inner));
    return nn::dropout(down->forward(kept), 0.5, /*site=*/1, layout, context);
  }
  Loss loss(const Batch& batch) const { return {forward(batch).square().sum(), batch.count}; }

  nn::TensorParallel ranks;
  std::shared_ptr<nn::ColumnLinear> up;
  std::shared_ptr<nn::RowLinear> down;
};

std::shared_ptr<Net> make_net(const nn::TensorParallel& ranks) {
  auto net = std::make_shared<Net>(ranks);
  nn::fill_parameters(*net, *nn::initial_values(*net, 1, {.std = 0.5}));
  net->to(at::kDouble);
  return net;
}

// Throws unless `drawn` is equal on ranks with parts of the same layers, and differs from that on each rank
// with other samples.
void expect_of_mesh(const Lite& lite, const Tensor& drawn, const std::string& what) {
  const auto equal_along = [&](const AxisRanks& ranks) {
    const Tensor all = ranks.all_gather(drawn.flatten());
    return all.eq(drawn.flatten()).all(1).sum().item<int64_t>();
  };
  const std::string tp = fmt::format("{} (tp {})", what, lite.tensor_parallel().size());
  expect(equal_along(lite.tensor_parallel()) == lite.tensor_parallel().size(), tp + " differ in a layer");
  expect(equal_along(lite.data_parallel()) == 1, tp + " are equal on ranks with other samples");
}

// The losses of a plain loop over the whole batches of 8 samples.
std::vector<double> plain_losses(const Sequences& sequences) {
  const auto net = make_net({});
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  std::vector<double> losses;
  for (int64_t begin = 0; begin < samples; begin += 8) {
    std::vector<int64_t> chosen(8);
    std::iota(chosen.begin(), chosen.end(), begin);
    optimizer.zero_grad();
    const Tensor mean = net->loss(sequences.pack(chosen)).sum / 8;
    mean.backward();
    optimizer.step();
    losses.push_back(mean.item<double>());
  }
  return losses;
}

// torch's random numbers after a setup and after a checkpoint of another mesh; the order of samples; masks of
// dropout, which are those of one rank.
void random_numbers(const LiteOptions& options, const std::string& folder) {
  const Sequences sequences;
  std::vector<double> expected;
  int64_t step = 0;
  for (const int tp : {1, 2, 4, 1}) {
    LiteOptions own = fp64(options);
    own.tp = tp;
    own.products = "aten";
    Lite lite(own);
    if (expected.empty()) expected = plain_losses(sequences);  // a Lite comes before other computations
    const Tensor masks = nn::dropout(at::ones({samples * places, inner}), 0.5, /*site=*/0,
                                     nn::PackedLayout(sequences.all()), context);
    auto [net, optimizer] = lite.setup(make_net(nn::TensorParallel::of(lite.tensor_parallel())),
                                       stretto::optim::sgd({.lr = 0.1}));
    expect_of_mesh(lite, at::rand({8}), "random numbers after setup");
    size_t batches = 0;
    for (auto& batch : lite.setup(sequences, {.batch_size = 8, .shuffle = false})) {
      optimizer.zero_grad();
      const double loss = lite.backward(net->loss(batch));
      expect(std::abs(loss / expected[batches++] - 1) < 1e-12, fmt::format("tp {}: another loss", tp));
      optimizer.step();
    }
    expect(batches == expected.size(), "batches are missing");
    for (auto& batch : lite.setup(sequences, {.batch_size = 8, .seed = 5})) {
      const Tensor ids = at::tensor(batch.sample_ids, at::kLong);
      expect_of_mesh(lite, ids, "samples");
      const Tensor mask =
          nn::dropout(at::ones({ids.size(0) * places, inner}), 0.5, 0, nn::PackedLayout(batch), context);
      expect_of_mesh(lite, mask, "masks of dropout");
      expect(mask.view({-1, places, inner}).equal(masks.view({-1, places, inner}).index_select(0, ids)),
             "a mask of dropout depends on the mesh");
    }

    lite.load(folder + "/c");  // written on the mesh before
    expect_of_mesh(lite, at::rand({8}), "random numbers after load");
    lite.save(folder + "/c", {.step = ++step});
    const Tensor next = at::rand({8});
    lite.load(folder + "/c");
    expect(at::rand({8}).equal(next), "random numbers do not continue from a checkpoint");
    lite.seed_everything(7);
    expect_of_mesh(lite, at::rand({8}), "random numbers after seed_everything");
  }
}

}  // namespace

Laws divided_laws() { return {{"random_numbers", random_numbers}}; }

}  // namespace stretto
