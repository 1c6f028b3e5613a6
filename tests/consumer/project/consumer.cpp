// A user's program, built with installed headers only: fits a line to points in its own process, without a
// launcher, and prints the number of steps and the final loss.
#include <iostream>

#include <stretto/stretto.h>

namespace {

using namespace stretto;

class Points : public data::Dataset {
 public:
  int64_t size() const override { return 20; }
  int32_t length_of(int64_t) const override { return 1; }
  Batch pack(std::span<const int64_t> samples) const override {
    Batch batch;
    batch.sample_ids.assign(samples.begin(), samples.end());
    batch.count = static_cast<int64_t>(samples.size());
    const Tensor x = at::tensor(batch.sample_ids).to(at::kFloat).div(10).unsqueeze(1);
    batch.tensors = {{"x", x}, {"y", 3 * x - 1}};
    return batch;
  }
};

class Line : public Module {
 public:
  Line() : line_(model(std::make_shared<nn::Linear>(1, 1))) {
    at::NoGradGuard no_grad;
    line_->weight.zero_();
    line_->bias.zero_();
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    return {(line_->forward(batch.at("x")) - batch.at("y")).square().sum(), static_cast<double>(batch.count)};
  }
  Predictions validation_step(const Batch& batch, StepContext&) override {
    return (line_->forward(batch.at("x")) - batch.at("y")).square().to(at::kDouble);
  }
  Metrics metrics(const Predictions& predictions) const override {
    return {{"loss", predictions.rows.mean().item<double>()}};
  }
  void save(const std::filesystem::path& folder, const ListedSource& weights) const override {
    save_safetensors(folder / "line.safetensors", weights);
  }

 private:
  std::shared_ptr<nn::Linear> line_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: consumer OUTPUT\n";
    return 2;
  }
  Recipe recipe;
  recipe.output = argv[1];
  recipe.training.epochs = 100;
  recipe.training.global_batch_size = 10;
  recipe.optimizer.as<stretto::optim::AdamwOptions>().lr = 0.1;
  recipe.track.progress = "off";
  recipe.checkpoint.monitor = "loss";
  Group group("gloo", memory_store(), 0, 1);
  Line line;
  const Points points;
  const Mesh mesh = make_mesh(recipe, group);
  const FitResult result = Trainer(recipe, mesh, at::kCPU).fit(line, points, &points);
  std::cout << result.steps << " steps, loss " << result.best->at("loss") << "\n";
  return result.best->at("loss") < 0.01 ? 0 : 1;
}
