#pragma once

#include <cmath>
#include <cstdio>

#include <torch/data.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

// Points in the plane, each on one of two spirals; the label is the spiral.
class Spirals : public torch::data::datasets::Dataset<Spirals> {
 public:
  explicit Spirals(size_t size) : size_(size) {}

  torch::data::Example<> get(size_t index) override {
    const double way = 0.5 + 6.0 * static_cast<double>(index) / static_cast<double>(size_);
    const double angle = way + 3.14159265 * static_cast<double>(index % 2);
    return {torch::tensor({way / 3 * std::cos(angle), way / 3 * std::sin(angle)}, torch::kFloat),
            torch::tensor(static_cast<int64_t>(index % 2))};
  }
  std::optional<size_t> size() const override { return size_; }

 private:
  size_t size_;
};

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& points) { return layers->forward(points); }
  torch::nn::Sequential layers = register_module(
      "layers", torch::nn::Sequential(torch::nn::Linear(2, 32), torch::nn::Tanh(), torch::nn::Linear(32, 32),
                                      torch::nn::Tanh(), torch::nn::Linear(32, 2)));
};
TORCH_MODULE(Net);

// Mean loss and accuracy over all points, as a line.
inline std::string evaluate(Net model, Spirals& data) {
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> points, labels;
  for (size_t i = 0; i < *data.size(); ++i) {
    points.push_back(data.get(i).data);
    labels.push_back(data.get(i).target);
  }
  const torch::Device device = model->parameters()[0].device();
  const torch::Tensor scores = model->forward(torch::stack(points).to(device)),
                      truth = torch::stack(labels).to(device);
  char line[80];
  std::snprintf(line, sizeof line, "loss %.5f | accuracy %.3f",
                torch::nn::functional::cross_entropy(scores, truth).item<double>(),
                scores.argmax(1).eq(truth).to(torch::kFloat).mean().item<double>());
  return line;
}
