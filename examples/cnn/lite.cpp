#include "bars.h"

#include "stretto/stretto.h"

int main() {
  stretto::Lite lite;
  torch::manual_seed(1);
  Bars data(500);
  auto loader = lite.make_data_loader(data.map(torch::data::transforms::Stack<>()),
                                      torch::data::DataLoaderOptions(32).workers(1));
  Net net;
  auto [model, optimizer] = lite.setup(net, torch::optim::Adam(net->parameters(), 1e-3));
  for (int epoch = 1; epoch <= 4; ++epoch) {
    for (auto& batch : loader) {
      optimizer.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target);
      lite.backward(loss);
      lite.clip_gradients(model, {.max_norm = 1.0});
      optimizer.step();
    }
    lite.print("epoch {} | {}", epoch, evaluate(model, data));
  }
}
