#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/summary.h"
#include "stretto/trainer/run/evaluate.h"

// Implements the functions of Trainer other than fit() with datasets.
namespace stretto {
namespace {

// Runs `work` on one rank per host, while the other ranks of the host wait.
void first_on_each_host(const Mesh& mesh, const std::string& what, const std::function<void()>& work) {
  Group& world = mesh.world();
  const std::vector<std::string> host_of = world.all_gather_bytes(world.host());
  std::vector<std::string> hosts = host_of;
  std::ranges::sort(hosts);
  hosts.erase(std::ranges::unique(hosts).begin(), hosts.end());
  if (hosts.size() == 1) return world.rank_0_first(what, work);
  std::unique_ptr<Group> host_group;
  for (const std::string& host : hosts) {
    std::vector<int> ranks;
    for (int rank = 0; rank < world.size(); ++rank) {
      if (host_of[static_cast<size_t>(rank)] == host) ranks.push_back(rank);
    }
    if (auto group = world.subgroup(ranks, "host")) host_group = std::move(group);
  }
  host_group->rank_0_first(what, work);
}

const data::Dataset& required(const data::Dataset* dataset, const char* what) {
  if (dataset == nullptr)
    throw ConfigError("DataModule: {}() returned a null pointer; return a dataset", what);
  return *dataset;
}

}  // namespace

void Trainer::prepare(DataModule& data, Stage stage) const {
  first_on_each_host(mesh_, "preparing data", [&] { data.prepare_data(); });
  data.setup(stage, {mesh_.position(Axes::data), mesh_.size(Axes::data)});
}

FitResult Trainer::fit(Module& module, DataModule& data) {
  prepare(data, Stage::fit);
  const auto before = validation_sets_;
  for (const auto& [name, samples] : data.more_validation())
    add_validation(name, required(samples, "more_validation"));
  const FitResult result = fit(module, required(data.train(), "train"), data.validation());
  validation_sets_ = before;
  return result;
}

trainer::Evaluation Trainer::evaluate_loaded(Module& module, const data::Dataset& samples,
                                             const TestOptions& options, trainer::EvaluationStep step) const {
  if (samples.size() == 0) throw DataError("the dataset has no samples to test or predict");
  const std::filesystem::path folder = options.model.empty() ? recipe_.output / "model" : options.model;
  if (options.load) {
    if (!std::filesystem::is_directory(folder)) {
      throw ConfigError("{}: there is no such folder; train the module first, or pass the folder of a model",
                        folder.string());
    }
    module.load(folder);
    module.take_source();  // its values would be replaced
  } else {
    read_parameters(module);
  }
  return evaluate_alone(recipe_, options.load ? folder.string() : "the module", module, samples, mesh_,
                        device_, step);
}

Metrics Trainer::test(Module& module, const data::Dataset& samples, const TestOptions& options) {
  const Metrics metrics = trainer::measure_everywhere(
      module, evaluate_loaded(module, samples, options, trainer::EvaluationStep::test), mesh_);
  if (mesh_.world().rank() == 0) {
    const trainer::RunFolder folder(recipe_.output);
    folder.write_json("test_results.json", trainer::metrics_json(metrics));
  }
  mesh_.world().barrier();
  return metrics;
}

Metrics Trainer::test(Module& module, DataModule& data, const TestOptions& options) {
  prepare(data, Stage::test);
  return test(module, required(data.test(), "test"), options);
}

Predictions Trainer::predict(Module& module, const data::Dataset& samples, const TestOptions& options) {
  Predictions predictions =
      evaluate_loaded(module, samples, options, trainer::EvaluationStep::predict).predictions;
  if (mesh_.world().rank() == 0 && predictions.empty())
    throw ConfigError("predict: predict_step returned nothing; return [batch.count, K] float64, or bytes");
  return predictions;
}

Predictions Trainer::predict(Module& module, DataModule& data, const TestOptions& options) {
  prepare(data, Stage::predict);
  return predict(module, required(data.predict(), "predict"), options);
}

}  // namespace stretto
