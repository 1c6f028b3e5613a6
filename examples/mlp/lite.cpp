#include "spirals.h"

#include "stretto/stretto.h"

int main() {
  stretto::Lite lite;
  torch::manual_seed(1);
  Spirals data(1001);
  auto loader = torch::data::make_data_loader(data.map(torch::data::transforms::Stack<>()), 64);
  auto [model, optimizer] = lite.setup(Net(), stretto::optim::sgd({.lr = 0.1, .momentum = 0.9}));
  for (int epoch = 1; epoch <= 10; ++epoch) {
    for (auto& batch : lite.setup(loader)) {
      optimizer.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target);
      lite.backward(loss);
      optimizer.step();
    }
    lite.print("epoch {} | {}", epoch, evaluate(model, data));
  }
}
