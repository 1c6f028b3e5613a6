// A Module whose layers are divided among ranks. docs/guide/parallel.md explains it.
//
//   module_divided module.yaml -N 2 --tp 2 [--sequence-parallel] [SECTION.KEY=VALUE ...]
#include "net.h"

namespace {

using at::Tensor;
namespace nn = stretto::nn;

class Sequences : public stretto::data::SampleDataset {
 public:
  Sequences(int64_t first, int64_t count)
      : SampleDataset(std::vector<int32_t>(static_cast<size_t>(count), length)), first_(first) {}

  stretto::data::Sample sample(int64_t index) const override {
    const Tensor ids = words_of(first_ + index);
    return {{"ids", ids}, {"labels", ids.select(0, 0) % classes}};
  }

 private:
  int64_t first_;
};

class SequenceTask : public stretto::Module {
 public:
  SequenceTask(const nn::TensorParallel& ranks, uint64_t seed) : net_(model(std::make_shared<Net>(ranks))) {
    parameters_from(nn::initial_values(*net_, seed, {.std = 0.1}));
  }

  stretto::Loss training_step(const stretto::Batch& batch, stretto::StepContext& context) override {
    const Tensor x = net_->embed(batch.at("ids")), states = net_->states(x);
    // Each rank counts its columns.
    const Tensor active = context.tensor_parallel().all_reduce(states.gt(0).sum());
    context.log("active", active.item<double>() / static_cast<double>(batch.count * length * inner));
    return nn::cross_entropy(net_->classify(x + net_->down->forward(states)), batch.at("labels"));
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
    const auto ranks = nn::TensorParallel::of(run.mesh.tensor_parallel());
    SequenceTask task(ranks, static_cast<uint64_t>(run.recipe.training.seed));
    const Sequences train(0, 400), validation(400, 100);
    return stretto::Trainer(run.recipe, run.mesh, run.device).fit(task, train, &validation);
  });
}
