#pragma once

#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <torch/data/dataloader.h>
#include <torch/nn/pimpl.h>

#include "stretto/base/log.h"
#include "stretto/checkpoint/writer.h"
#include "stretto/comm/job.h"
#include "stretto/lite/agreement.h"
#include "stretto/lite/loader.h"
#include "stretto/lite/loop.h"
#include "stretto/lite/model.h"
#include "stretto/lite/optimizer.h"
#include "stretto/lite/ranks.h"
#include "stretto/parallel/random_state.h"
#include "stretto/tensor/autocast.h"
#include "stretto/tensor/safetensors.h"

namespace stretto {

namespace lite {

// The module behind what a program calls its model.
template <class M>
requires std::derived_from<M, torch::nn::Module>
const torch::nn::Module& module_of(const M& module) { return module; }
template <class M>
const torch::nn::Module& module_of(const std::shared_ptr<M>& module) {
  if (module == nullptr) throw ConfigError("Lite: the model is a null pointer");
  return *module;
}
template <class Holder>
requires std::is_base_of_v<torch::detail::ModuleHolderIndicator, Holder>
const torch::nn::Module& module_of(const Holder& holder) {
  if (holder.is_empty()) throw ConfigError("Lite: the model is an empty module holder");
  return *holder.ptr();
}
template <class M>
concept ModuleLike = requires(const M& model) {
  module_of(model);
};

template <class Loader>
concept BatchRange = requires(Loader& loader) {
  ++std::begin(loader) != std::end(loader);
};

}  // namespace lite

struct ClipOptions {
  double max_norm = 0;  // gradients are scaled down to this L2 norm; 0: any
  double clip_val = 0;  // elements are held within +- this; 0: any
};

struct SaveOptions {
  int64_t step = 0;                                 // names the checkpoint: step-<N>
  nlohmann::json extra = nlohmann::json::object();  // whatever the program wants back from load()
  int64_t keep_last = 0;                            // so many newest checkpoints are kept; 0: all
};

struct DatasetLoaderOptions {
  int64_t batch_size = 32;  // over all ranks
  bool shuffle = true;
  uint64_t seed = 0;
};

// Many ranks for a program that has its own loop over its own torch::nn::Modules; docs/guide/lite.md shows one.
//
//   stretto::Lite lite({.devices = 2});
//   auto [model, optimizer] = lite.setup(Net(), optim::adamw({.lr = 5e-5}));
//   for (auto& batch : lite.setup(loader)) {
//     optimizer.zero_grad();
//     lite.backward(model->loss(batch));
//     optimizer.step();
//   }
//
// The program computes what it would compute on one rank, to rounding: a loader's batch is divided among the ranks, and
// after backward each gradient is that of the whole batch. Every rank must make the same calls in the same order; ranks
// that have come apart end with a DistributedError that names them. An exception that leaves main() ends the rank with
// its message and exit code 1, or 2 for a ConfigError, which `stretto launch` never tries again. A program has one Lite.
// Not thread-safe.
class Lite {
 public:
  // Make it first in main(): a program that was started plainly is run again once a rank, and what went before is done
  // once more by each. Throws ConfigError for what cannot be honoured.
  explicit Lite(const LiteOptions& options = {});
  ~Lite();
  Lite(const Lite&) = delete;
  Lite& operator=(const Lite&) = delete;

  // --- who and where

  int global_rank() const { return job_.info.rank; }
  int local_rank() const { return job_.info.local_rank; }
  int node_rank() const { return job_.info.group_rank; }
  int world_size() const { return job_.group->size(); }
  bool is_global_zero() const { return global_rank() == 0; }
  at::Device device() const { return job_.device; }
  Group& group() { return *job_.group; }

  // --- set-up

  // Moves the model to the device, gives every rank rank 0's parameters and buffers, and binds the optimizers to it.
  // Returns the model as it was given (a shared_ptr or torch module holder, or a reference to a module that the caller
  // keeps) and a LiteOptimizer for each optimizer: one of stretto's, or any of torch's, which may be given by
  // reference or moved in. The model must not be replaced, moved or given further parameters afterwards. From the first
  // setup on the ranks draw different random numbers.
  // Throws ConfigError by name for parameters that cannot be trained, or that were set up before.
  template <class M, class... Optimizers>
  requires lite::ModuleLike<std::remove_cvref_t<M>>
  auto setup(M&& model, Optimizers&&... optimizers);

  // The loader's batches on this rank's device, in this rank's share: a range over an epoch, to be looped over again and
  // again. `loader`: a torch data loader, or any range of batches (stretto/lite/batch.h says which types these
  // may be), which must outlive the result; or a unique_ptr to one, which may be moved in.
  // Each rank reads all of a batch and keeps its share. Where reading is expensive, make_data_loader() is better.
  template <lite::BatchRange Loader>
  LiteLoader<Loader> setup(Loader& loader, Distribute distribute = Distribute::split);
  template <lite::BatchRange Loader>
  LiteLoader<Loader> setup(const std::unique_ptr<Loader>& loader, Distribute distribute = Distribute::split);
  template <lite::BatchRange Loader>
  LiteLoader<Loader> setup(std::unique_ptr<Loader>&& loader, Distribute distribute = Distribute::split);
  template <class Source>
  void setup(LiteLoader<Source>& loader, Distribute distribute = Distribute::split) {
    static_assert(!std::same_as<Source, Source>, "Lite::setup: this loader was set up before; loop over it");
  }

  // torch::data::make_data_loader and setup() in one: every rank reads its share only. options.batch_size counts samples
  // over all ranks. Throws ConfigError where options.enforce_ordering is off.
  template <class Dataset, class Sampler>
  auto make_data_loader(Dataset dataset, Sampler sampler, torch::data::DataLoaderOptions options);
  template <class Sampler = torch::data::samplers::RandomSampler, class Dataset>
  auto make_data_loader(Dataset dataset, torch::data::DataLoaderOptions options);

  // Packed batches of a dataset of stretto's, which must outlive the result.
  LiteLoader<lite::DatasetBatches> setup(const data::Dataset& dataset, const DatasetLoaderOptions& options);

  // --- a step

  // In place of loss.backward(). Afterwards parameter.grad() is, on every rank, what it would be on one rank that saw
  // the whole batch. `loss`: the mean over this rank's batch. It is weighed by the samples of the batch that was given
  // out last; outside of a loop over a loader all ranks weigh the same, which the log says once.
  // Gradients add up until zero_grad(), as torch's do: a program that accumulates over several batches divides its
  // losses itself, as it would on one rank.
  // Returns the mean of what the ranks gave over the global batch; under no_backward_sync this rank's. `keep_graph` as
  // torch's.
  double backward(const Tensor& loss, bool keep_graph = false);

  // The same for a loss as a sum and how many samples or tokens it counts. It is divided by the count over all ranks and
  // over all backwards since the last one that synchronised: do not divide for accumulation.
  double backward(const Loss& loss, bool keep_graph = false);

  // Until the guard ends, backward adds gradients up without exchanging them. The last backward before a step must be
  // outside of one. `enabled` saves an if.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(int* depth) : depth_(depth) {
      if (depth_ != nullptr) ++*depth_;
    }
    ~NoSync() {
      if (depth_ != nullptr) --*depth_;
    }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    int* depth_;
  };
  NoSync no_backward_sync(bool enabled = true) { return NoSync(enabled ? &no_sync_ : nullptr); }

  // Samples of the batch at hand that are this rank's; 0 where the rank was given a stand-in, because there are fewer
  // samples than ranks. For metrics that a program adds up itself.
  int64_t sample_count() const { return loop_.share() ? loop_.share()->count : 0; }

  // Clips the gradients of a model between backward and step. Returns their L2 norm before. Throws Error naming the
  // parameter where it is not finite.
  template <class M>
  double clip_gradients(const M& model, const ClipOptions& options) {
    return clip(find(lite::module_of(model)), options);
  }

  // Computes in the run's precision while the guard lives; inside of a loop over a loader that was set up it is so
  // already. Does nothing in fp32 and fp64.
  std::unique_ptr<Autocast> autocast();

  // --- the ranks together

  Tensor all_gather(const Tensor& tensor);               // [...] -> [world_size, ...]
  Tensor all_reduce(const Tensor& tensor);               // the mean, as Fabric's
  Tensor all_reduce(const Tensor& tensor, ReduceOp op);  // a new tensor
  double all_reduce(double value);                       // the mean
  double all_reduce(double value, ReduceOp op);
  Tensor broadcast(const Tensor& tensor, int source = 0);  // a new tensor
  std::string broadcast(const std::string& bytes, int source = 0);
  void barrier();

  // While the guard lives rank 0 alone goes on; the others enter when it has ended. For downloads and caches.
  class [[nodiscard]] RankZeroFirst {
   public:
    explicit RankZeroFirst(Lite& lite) : lite_(lite) {
      if (!lite.is_global_zero()) lite.barrier();
    }
    ~RankZeroFirst() noexcept(false) {
      if (lite_.is_global_zero() && std::uncaught_exceptions() == 0) lite_.barrier();
    }
    RankZeroFirst(const RankZeroFirst&) = delete;
    RankZeroFirst& operator=(const RankZeroFirst&) = delete;

   private:
    Lite& lite_;
  };
  RankZeroFirst rank_zero_first() { return RankZeroFirst(*this); }

  // --- small things

  // Every tensor in it on this rank's device.
  template <class T>
  T to_device(T value) const {
    lite::for_each_tensor(value, [&](Tensor& tensor) { tensor = tensor.to(device()); });
    return value;
  }

  // A line on standard output, rank 0's only.
  template <class... Args>
  void print(fmt::format_string<Args...> text, Args&&... args) const {
    if (!is_global_zero()) return;
    log::print(fmt::format(text, std::forward<Args>(args)...));
  }

  // Seeds torch's generators: alike on all ranks until the first model is set up, then different ones on ranks but 0.
  void seed_everything(uint64_t seed);

  // --- files

  // Saves models, optimizers, random numbers and `extra` to <folder>/step-<N>, whole or not at all, for any number of
  // ranks to load. Buffers are rank 0's: all ranks take them. Returns the checkpoint's folder. Collective.
  std::filesystem::path save(const std::filesystem::path& folder, const SaveOptions& options);

  // Loads a checkpoint, or the newest whole one of a folder of them, into the models and optimizers that were set up, and
  // returns what `extra` held; nothing where the folder holds no checkpoint. Throws DataError where it is of another
  // model. Collective.
  std::optional<nlohmann::json> load(const std::filesystem::path& folder);

  // A plain .safetensors file: rank 0 writes it, all wait.
  void save_tensors(const std::filesystem::path& path, const NamedTensors& tensors);
  // On the device of this rank. Every rank reads the file.
  NamedTensors load_tensors(const std::filesystem::path& path) const;

 private:
  // How many optimizers of each kind a model comes with.
  struct OptimizerCounts {
    int own = 0;
    int torch = 0;
  };
  lite::Model& add_model(const torch::nn::Module& module, const OptimizerCounts& counts,
                         std::unique_ptr<optim::Optimizer> optimizer);
  lite::Model& find(const torch::nn::Module& module);
  LiteOptimizer add_optimizer(lite::Model& model);  // the engine's own
  LiteOptimizer add_optimizer(lite::Model& model, std::shared_ptr<torch::optim::Optimizer> optimizer);
  template <class O>
  LiteOptimizer bind(lite::Model& model, O&& optimizer);
  double run_backward(const Tensor& loss, double weight, std::optional<double> count, bool keep_graph);
  void refuse_strangers(const std::vector<Tensor>& leaves);
  double clip(lite::Model& model, const ClipOptions& options);
  State state(const std::set<std::string>* stored, int writers);
  void warn_once(bool& said, const std::string& text) const;

  lite::ProcessHook hook_;
  lite::Settings settings_;
  Job job_;
  lite::Agreement agreement_;
  lite::Loop loop_;
  std::deque<lite::Model> models_;
  std::vector<std::unique_ptr<lite::OptimizerBackend>> optimizers_;
  std::map<std::filesystem::path, std::unique_ptr<checkpoint::Writer>> writers_;
  RandomState random_;
  int no_sync_ = 0;
  bool autocast_was_used_ = false;  // since the last backward
  bool said_equal_weights_ = false;
  bool said_stranger_ = false;
};

template <class M, class... Optimizers>
requires lite::ModuleLike<std::remove_cvref_t<M>>
auto Lite::setup(M&& model, Optimizers&&... optimizers) {
  constexpr int own =
      (0 + ... + int{std::same_as<std::remove_cvref_t<Optimizers>, std::unique_ptr<optim::Optimizer>>});
  constexpr int given = sizeof...(Optimizers);
  std::unique_ptr<optim::Optimizer> optimizer;  // stretto's own, which the model's engine keeps
  [[maybe_unused]] const auto take = [&](auto&& each) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(each)>, std::unique_ptr<optim::Optimizer>>)
      optimizer = std::move(each);
  };
  (take(std::forward<Optimizers>(optimizers)), ...);
  lite::Model& added = add_model(lite::module_of(model), {own, given - own}, std::move(optimizer));
  // A module itself stays the caller's; handles are given back by value.
  constexpr bool is_module = std::derived_from<std::remove_cvref_t<M>, torch::nn::Module>;
  static_assert(
      !is_module || std::is_lvalue_reference_v<M>,
      "Lite::setup does not keep modules: give it a shared_ptr, a module holder, or a module that lives on");
  using Result = std::conditional_t<is_module, M, std::remove_cvref_t<M>>;
  if constexpr (given == 0) {
    return Result(std::forward<M>(model));
  } else {
    // In a braced list the optimizers are bound in the order they were given in.
    return std::tuple<Result, decltype(bind(added, std::forward<Optimizers>(optimizers)))...>{
        std::forward<M>(model), bind(added, std::forward<Optimizers>(optimizers))...};
  }
}

template <class O>
LiteOptimizer Lite::bind(lite::Model& model, O&& optimizer) {
  using Type = std::remove_cvref_t<O>;
  if constexpr (std::same_as<Type, std::unique_ptr<optim::Optimizer>>) {
    return add_optimizer(model);
  } else if constexpr (!std::derived_from<Type, torch::optim::Optimizer>) {
    return add_optimizer(model, std::shared_ptr<torch::optim::Optimizer>(std::forward<O>(optimizer)));
  } else if constexpr (std::is_lvalue_reference_v<O>) {
    return add_optimizer(model, std::shared_ptr<torch::optim::Optimizer>(&optimizer, [](auto*) {}));
  } else {
    return add_optimizer(
        model, std::shared_ptr<torch::optim::Optimizer>(std::make_shared<Type>(std::move(optimizer))));
  }
}

template <lite::BatchRange Loader>
LiteLoader<Loader> Lite::setup(Loader& loader, Distribute distribute) {
  const std::shared_ptr<Loader> borrowed(&loader, [](Loader*) {});
  return LiteLoader<Loader>(borrowed, loop_.record(&loader), loop_, distribute);
}

template <lite::BatchRange Loader>
LiteLoader<Loader> Lite::setup(const std::unique_ptr<Loader>& loader, Distribute distribute) {
  if (loader == nullptr) throw ConfigError("Lite: the loader is a null pointer");
  return setup(*loader, distribute);
}

template <lite::BatchRange Loader>
LiteLoader<Loader> Lite::setup(std::unique_ptr<Loader>&& loader, Distribute distribute) {
  if (loader == nullptr) throw ConfigError("Lite: the loader is a null pointer");
  const std::shared_ptr<Loader> owned(std::move(loader));
  return LiteLoader<Loader>(owned, loop_.record(nullptr), loop_, distribute);
}

template <class Dataset, class Sampler>
auto Lite::make_data_loader(Dataset dataset, Sampler sampler, torch::data::DataLoaderOptions options) {
  if (!options.enforce_ordering()) {
    throw ConfigError(
        "Lite::make_data_loader: enforce_ordering(false) would mix up the ranks' shares; leave it on");
  }
  auto shares = std::make_shared<lite::ShareQueue>();
  lite::SplitSampler<Sampler> split(std::move(sampler), global_rank(), world_size(), options.drop_last(),
                                    shares);
  auto loader = torch::data::make_data_loader(std::move(dataset), std::move(split), options.drop_last(false));
  using Loader = typename decltype(loader)::element_type;
  const std::shared_ptr<Loader> owned(std::move(loader));
  return LiteLoader<Loader>(owned, loop_.record(nullptr), loop_, Distribute::split, shares);
}

template <class Sampler, class Dataset>
auto Lite::make_data_loader(Dataset dataset, torch::data::DataLoaderOptions options) {
  const auto size = dataset.size();
  if (!size)
    throw ConfigError("Lite::make_data_loader: the data set does not know its size; give it a sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), std::move(options));
}

}  // namespace stretto
