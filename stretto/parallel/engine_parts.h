#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/parallel/arena.h"
#include "stretto/parallel/average.h"
#include "stretto/parallel/copied_parts.h"
#include "stretto/parallel/data_parallel.h"
#include "stretto/parallel/divided_weights.h"
#include "stretto/parallel/engine_facts.h"
#include "stretto/parallel/engine_options.h"
#include "stretto/parallel/file_units.h"
#include "stretto/parallel/gathered_units.h"
#include "stretto/parallel/leaf_watch.h"
#include "stretto/parallel/reducer.h"

namespace stretto {
class TensorSource;
}

namespace stretto::parallel {

// The parts of an engine, which its public classes (engine.h, backward.h, gradient_view.h, weight_view.h)
// share. Internal to parallel/.
struct EngineParts {
  EngineParts(torch::nn::Module& module, const Mesh& mesh, const EngineOptions& engine_options,
              std::unique_ptr<optim::Optimizer> stepper, const TensorSource* values);

  const ModuleTensors& tensors() const { return facts.tensors; }
  // The name of a trainable parameter by its index; "" for -1.
  std::string parameter_name(int64_t parameter) const;
  // The lowest of the parameters, by index, of the ranks among which layers are divided and, if
  // `over_shards`, of the shards; -1: none. Collective over these ranks.
  int64_t least_of_ranks(int64_t parameter, bool over_shards) const;
  // The global tensor of a parameter of which this rank has the elements `local`, a vector; they are viewed
  // if they are all of it. Collective over the ranks among which it is divided.
  Tensor whole(const Arena::Parameter& parameter, const Tensor& local) const;
  // Gathers every rank's shard of `whole` on all ranks of a copy. Collective.
  void gather_shards(const Tensor& whole) const;
  // After each rank has written its shard of the parameters: makes all of them available to the others.
  // Collective.
  void share_parameters();
  void catch_up();  // updates rows that are stepped lazily
  // Exchanges the weights and their average. Collective. REQUIRES: average.
  void swap_average();
  void offload_state() const;       // writes the state to files, after a step
  void offload_parameters() const;  // and the parameters
  bool parameters_in_files() const { return !options.offload_parameters.empty(); }
  // Broadcasts rank 0's buffers. Collective.
  void synchronise_buffers();
  std::vector<int64_t> buffer_versions() const;

  const EngineOptions options;
  const DataParallel ranks;
  const PartsOverGroup tensor_parts;  // the ranks of ranks.parts
  EngineFacts facts;
  std::unique_ptr<optim::Optimizer> optimizer;  // may be null
  const CopiedParts copied;
  const ArenaOptions arena_options;
  Arena arena;
  std::optional<GatheredUnits> units;   // if parameters are sharded and not shared
  std::optional<FileUnits> file_units;  // if they are whole and in files
  Reducer reducer;
  std::optional<WeightAverage> average;
  std::optional<LeafWatch> watch;
  Tensor gradients_aside;                      // as long as the gradients' buffer; see GradientView
  std::vector<Tensor> offloaded;               // the optimizer's state that is in files
  std::vector<int64_t> synchronised_versions;  // of the buffers after the last synchronisation

 private:
  void bind_optimizer();
  Allocator optimizer_memory();
  EngineMemory measure_memory() const;
  void complete_facts();
};

}  // namespace stretto::parallel
