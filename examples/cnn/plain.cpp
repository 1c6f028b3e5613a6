#include "bars.h"

int main() {
  torch::manual_seed(1);
  Bars data(500);
  auto loader = torch::data::make_data_loader(data.map(torch::data::transforms::Stack<>()),
                                              torch::data::DataLoaderOptions(32).workers(1));
  Net model;
  torch::optim::Adam optimizer(model->parameters(), 1e-3);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target);
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
      optimizer.step();
    }
    std::printf("epoch %d | %s\n", epoch, evaluate(model, data).c_str());
  }
}
