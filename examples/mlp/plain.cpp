#include "spirals.h"

int main() {
  torch::manual_seed(1);
  Spirals data(1001);
  auto loader = torch::data::make_data_loader(data.map(torch::data::transforms::Stack<>()), 64);
  Net model;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int epoch = 1; epoch <= 10; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
    }
    std::printf("epoch %d | %s\n", epoch, evaluate(model, data).c_str());
  }
}
