// A network whose layers are divided among ranks, by the public layers of nn/tensor_parallel.h.
// docs/guide/parallel.md explains it.
//
//   module_divided divided.yaml -N 2 --tp 2 [SECTION.KEY=VALUE ...]
#include "stretto/stretto.h"

namespace {

using at::Tensor;
namespace nn = stretto::nn;

constexpr int64_t words = 50, length = 8;

// Sequences of words. The first word's number modulo 5 is the class.
class Sequences : public stretto::data::SampleDataset {
 public:
  Sequences(int64_t first, int64_t count)
      : SampleDataset(std::vector<int32_t>(static_cast<size_t>(count), length)), first_(first) {}

  stretto::data::Sample sample(int64_t index) const override {
    const Tensor ids = (at::arange(length) * 7 + (first_ + index) * 3) % words;
    return {{"ids", ids}, {"labels", ids.select(0, 0) % 5}};
  }

 private:
  int64_t first_;
};

struct Net : torch::nn::Module {
  explicit Net(const nn::TensorParallel& ranks)
      : table(register_module("table", std::make_shared<nn::VocabularyEmbedding>(words, 32, ranks))),
        up(register_module("up", std::make_shared<nn::ColumnLinear>(length * 32, 64, ranks))),
        down(register_module("down", std::make_shared<nn::RowLinear>(64, 5, ranks))) {}

  // ids [B, length] -> logits [B, 5]
  Tensor forward(const Tensor& ids) const {
    const Tensor vectors = table->forward(ids.flatten()).view({ids.size(0), -1});
    return down->forward(nn::activate(up->forward(vectors), nn::activation("relu")));
  }

  std::shared_ptr<nn::VocabularyEmbedding> table;
  std::shared_ptr<nn::ColumnLinear> up;
  std::shared_ptr<nn::RowLinear> down;
};

class SequenceTask : public stretto::Module {
 public:
  SequenceTask(const nn::TensorParallel& ranks, uint64_t seed) : net_(model(std::make_shared<Net>(ranks))) {
    parameters_from(nn::initial_values(*net_, seed, {.std = 0.1}));
  }

  stretto::Loss training_step(const stretto::Batch& batch, stretto::StepContext&) override {
    return nn::cross_entropy(net_->forward(batch.at("ids")), batch.at("labels"));
  }

  stretto::Predictions validation_step(const stretto::Batch& batch, stretto::StepContext&) override {
    const Tensor right = net_->forward(batch.at("ids")).argmax(1).eq(batch.at("labels"));
    return right.to(at::kDouble).unsqueeze(1);
  }

  stretto::Metrics metrics(const stretto::Predictions& predictions) const override {
    return {{"accuracy", predictions.rows.mean().item<double>()}};
  }

 private:
  std::shared_ptr<Net> net_;
};

}  // namespace

int main(int argc, char** argv) {
  return stretto::run_program(argc, argv, [](const stretto::Run& run) {
    const nn::TensorParallel ranks = {&run.mesh.group(stretto::Axis::tp)};
    SequenceTask task(ranks, static_cast<uint64_t>(run.recipe.training.seed));
    const Sequences train(0, 400), validation(400, 100);
    return stretto::Trainer(run.recipe, run.mesh, run.device).fit(task, train, &validation);
  });
}
