#pragma once

#include <torch/data.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/serialize.h>
#include <torch/utils.h>

// Noisy pictures, 1 x 12 x 12, of a horizontal or vertical bar.
class Bars : public torch::data::datasets::Dataset<Bars> {
 public:
  explicit Bars(int64_t size) {
    const at::Generator random = at::detail::createCPUGenerator(7);
    pictures_ = torch::rand({size, 1, 12, 12}, random);
    labels_ = torch::arange(size).remainder(2);
    for (int64_t i = 0; i < size; ++i) {
      torch::Tensor picture = pictures_[i][0];
      const int64_t position = i / 2 % 12;
      (i % 2 == 0 ? picture[position] : picture.select(1, position)) += 0.5;
    }
  }

  torch::data::Example<> get(size_t index) override {
    const auto i = static_cast<int64_t>(index);
    return {pictures_[i], labels_[i]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(labels_.size(0)); }
  const torch::Tensor& pictures() const { return pictures_; }
  const torch::Tensor& labels() const { return labels_; }

 private:
  torch::Tensor pictures_, labels_;
};

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& pictures) {
    torch::Tensor x = torch::relu(first->forward(pictures));
    x = torch::max_pool2d(torch::relu(second->forward(x)), 2);
    return last->forward(x.flatten(1));
  }
  torch::nn::Conv2d first = register_module("first", torch::nn::Conv2d(1, 8, 3));
  torch::nn::Conv2d second = register_module("second", torch::nn::Conv2d(8, 8, 3));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8 * 4 * 4, 2));
};
TORCH_MODULE(Net);

// Mean loss and accuracy over all pictures, as a line.
inline std::string evaluate(Net model, const Bars& data) {
  torch::NoGradGuard no_grad;
  const torch::Device device = model->first->weight.device();
  const torch::Tensor scores = model->forward(data.pictures().to(device)).cpu();
  char line[80];
  std::snprintf(line, sizeof line, "loss %.5f | accuracy %.3f",
                torch::nn::functional::cross_entropy(scores, data.labels()).item<double>(),
                scores.argmax(1).eq(data.labels()).to(torch::kFloat).mean().item<double>());
  return line;
}
