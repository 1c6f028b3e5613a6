#include "stretto/trainer/api/trainer.h"

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/environment.h"
#include "stretto/config/topology_request.h"
#include "stretto/data/subset.h"
#include "stretto/strategy/topology.h"
#include "stretto/trainer/api/callbacks.h"
#include "stretto/trainer/api/callbacks/early_stopping.h"
#include "stretto/trainer/api/callbacks/max_time.h"
#include "stretto/trainer/api/callbacks/weight_histograms.h"
#include "stretto/trainer/run/fit.h"
#include "stretto/trainer/run/same_inputs.h"
#include "stretto/trainer/run/serve_evaluations.h"

namespace stretto {
namespace {

// The callbacks that the recipe selects.
std::vector<std::shared_ptr<Callback>> callbacks_of(const Recipe& recipe) {
  std::vector<std::shared_ptr<Callback>> callbacks;
  if (recipe.early_stopping.in_use()) callbacks.push_back(std::make_shared<trainer::EarlyStopping>(recipe));
  if (recipe.training.max_time)
    callbacks.push_back(std::make_shared<trainer::MaxTime>(*recipe.training.max_time));
  if (!recipe.track.histograms.never())
    callbacks.push_back(std::make_shared<trainer::WeightHistograms>(recipe.track.histograms));
  return callbacks;
}

Input describe_samples(const std::string& name, const data::Dataset* dataset) {
  if (dataset == nullptr) return {name, "not given"};
  return {name, fmt::format("{} samples, contents {}", dataset->size(), dataset->fingerprint())};
}

}  // namespace

Mesh make_mesh(const Recipe& recipe, Group& world) {
  TopologyRequest request = topology_request(recipe);
  if (cluster::evaluation_socket())  // a single rank, which does not train
    request = {.batch = {.batch_size = recipe.training.batch_size}, .labels = request.labels};
  const std::vector<std::string> hosts = world.all_gather_bytes(world.host());
  const Topology topology = resolve(request, hosts);
  const std::string slow = slow_topology(topology, hosts, request.labels);
  if (!slow.empty() && world.rank() == 0) log::warning("{}", slow);
  return Mesh(world, topology.shape, topology.batch, recipe.training.mesh.sequence_parallel);
}

Mesh make_mesh(const Recipe& recipe, Group& world, const MeshShape& shape) {
  return Mesh(world, shape, resolve(topology_request(recipe), shape).batch,
              recipe.training.mesh.sequence_parallel);
}

void Trainer::add_validation(const std::string& name, const data::Dataset& samples) {
  if (name.empty() || name.find('/') != std::string::npos)
    throw ConfigError("add_validation: \"{}\" is not a name of samples; expected one without \"/\"", name);
  for (const auto& [taken, other] : validation_sets_) {
    if (taken == name) throw ConfigError("add_validation: there are samples named \"{}\" already", name);
  }
  validation_sets_.emplace_back(name, &samples);
}

FitResult Trainer::fit(Module& module, const data::Dataset& all, const data::Dataset* validation) {
  std::optional<data::Subset> limited;  // by training.max_samples
  const auto& limit = recipe_.training.max_samples;
  if (limit && *limit < all.size()) limited.emplace(all, data::evenly_spaced(all.size(), *limit));
  const data::Dataset& train = limited ? *limited : all;
  if (validation == nullptr && !validation_sets_.empty()) {
    throw ConfigError(
        "add_validation: fit() has no validation samples, by which the best model is chosen; pass it one of the sets");
  }
  std::vector<Input> inputs = {describe_samples("training samples", &train),
                               describe_samples("validation samples", validation)};
  for (const auto& [name, samples] : validation_sets_)
    inputs.push_back(describe_samples("validation samples " + name, samples));
  trainer::require_same_inputs(mesh_.world(), inputs);
  if (train.size() == 0) throw DataError("fit: the training dataset has no samples");
  if (validation != nullptr && validation->size() == 0)
    throw DataError(
        "fit: the validation dataset has no samples; pass a null pointer to train without evaluation");
  if (const auto socket = cluster::evaluation_socket()) {
    trainer::serve_evaluations(recipe_, module, mesh_, device_,
                               trainer::validation_samples(recipe_, validation, validation_sets_), *socket);
  }
  auto every_callback = callbacks_of(recipe_);
  every_callback.insert(every_callback.end(), callbacks_.begin(), callbacks_.end());
  track::Trackers trackers = trainer::make_trackers(recipe_, mesh_.world().rank(), trackers_);
  trainer::Callbacks callbacks(std::move(every_callback), {recipe_, module, mesh_, trackers, train});
  std::vector<ModelRule> rules;
  for (const std::string& text : recipe_.checkpoint.save_models) rules.push_back(parse_model_rule(text));
  rules.insert(rules.end(), model_rules_.begin(), model_rules_.end());
  const trainer::SessionParts parts = {.recipe = recipe_,
                                       .mesh = mesh_,
                                       .device = device_,
                                       .module = module,
                                       .train = train,
                                       .callbacks = callbacks,
                                       .trackers = trackers,
                                       .validation = validation,
                                       .other_sets = validation_sets_,
                                       .rules = std::move(rules)};
  std::unique_ptr<trainer::Fit> fit;
  try {
    fit = std::make_unique<trainer::Fit>(parts, trainer::find_checkpoint(recipe_, mesh_));
    FitResult result = fit->run();
    result.training_samples = train.size();
    if (!result.was_finished) trackers.end(result.stopped ? RunEnd::stopped : RunEnd::finished);
    return result;
  } catch (const std::exception& error) {
    trackers.end(RunEnd::failed);
    if (fit) fit->catch_up();
    callbacks.notify_exception(error);
    throw;
  }
}

}  // namespace stretto
