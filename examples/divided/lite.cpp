// The same network in a program with its own loop. docs/guide/parallel.md explains it.
//
//   lite_divided TP EPOCHS [FOLDER [rows]]   trains to EPOCHS epochs with each layer on TP ranks, from the
//                                            newest checkpoint in FOLDER if there is one; "rows": with
//                                            sequence parallelism
#include "net.h"

#include <torch/data.h>

namespace {

struct Sequences : torch::data::datasets::Dataset<Sequences> {
  torch::data::Example<> get(size_t index) override {
    const at::Tensor ids = words_of(static_cast<int64_t>(index));
    return {ids, ids.select(0, 0) % classes};
  }
  std::optional<size_t> size() const override { return 403; }  // the last batch is smaller
};

}  // namespace

int main(int argc, char** argv) {
  const bool divides_rows = argc > 4 && std::string(argv[4]) == "rows";
  stretto::Lite lite({.tp = argc > 1 ? std::stoi(argv[1]) : 1, .sequence_parallel = divides_rows});
  const int epochs = argc > 2 ? std::stoi(argv[2]) : 3;
  torch::manual_seed(1);
  const auto net = std::make_shared<Net>(stretto::nn::TensorParallel::of(lite.tensor_parallel()));
  stretto::nn::fill_parameters(*net, *stretto::nn::initial_values(*net, /*seed=*/1, {.std = 0.1}));
  auto loader = lite.make_data_loader(Sequences().map(torch::data::transforms::Stack<>()),
                                      torch::data::DataLoaderOptions(20));
  auto [model, optimizer] = lite.setup(net, stretto::optim::adamw({.lr = 1e-3}));

  int first = 1;
  if (argc > 3) {
    if (const auto extra = lite.load(argv[3])) first = extra->at("epoch").get<int>() + 1;
  }
  for (int epoch = first; epoch <= epochs; ++epoch) {
    double correct = 0, count = 0, norm = 0;
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const at::Tensor logits = model->forward(batch.data);
      lite.backward(stretto::nn::cross_entropy(logits, batch.target));
      norm = lite.clip_gradients(model, {.max_norm = 1});
      optimizer.step();
      if (lite.sample_count() == 0) continue;  // a dummy batch: fewer samples than data ranks
      correct += logits.argmax(1).eq(batch.target).sum().item<double>();
      count += static_cast<double>(lite.sample_count());
    }
    // Sums over the ranks with other samples; those with parts of the same layers have equal ones.
    const at::Tensor sums = lite.data_parallel().all_reduce(at::tensor({correct, count}, at::kDouble));
    lite.print("epoch {} | {} of {} right | norm {:.3f}", epoch, sums[0].item<double>(),
               sums[1].item<double>(), norm);
    if (argc > 3) lite.save(argv[3], {.step = epoch, .extra = {{"epoch", epoch}}});
  }
}
