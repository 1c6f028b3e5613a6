#pragma once

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "stretto/base/log.h"
#include "stretto/base/precision.h"
#include "stretto/comm/mesh.h"
#include "stretto/lite/loader.h"
#include "stretto/lite/optimizer.h"
#include "stretto/optim/optimizer.h"
#include "stretto/tensor/autocast.h"
#include "stretto/tensor/safetensors.h"

// Programs that use these include torch/data.h and torch/optim.h.
namespace torch::data {
struct DataLoaderOptions;
namespace samplers {
class RandomSampler;
}
}  // namespace torch::data
namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace stretto {

struct State;

namespace lite {

class Model;
struct Session;

// The module of a reference, shared_ptr or module holder. Throws ConfigError for a null pointer and for an
// empty holder.
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

// torch::data::make_data_loader, found where the program calls it.
template <class Dataset, class Sampler, class Options>
auto torch_data_loader(Dataset dataset, Sampler sampler, Options options) {
  return make_data_loader(std::move(dataset), std::move(sampler), std::move(options));
}

template <class Loader>
concept BatchRange = requires(Loader& loader) {
  ++std::begin(loader) != std::end(loader);
};

}  // namespace lite

// The options of Lite; names follow Lightning Fabric.
struct LiteOptions {
  int devices = 0;    // ranks on this host; 0: as many as the launcher started, else one per GPU, else one
  int num_nodes = 0;  // hosts; 0: as many as the launcher started, else one
  std::string accelerator = "auto";  // "auto" (GPUs if there are any), "cpu" or "cuda" ("gpu")
  std::string strategy = "auto";     // "ddp" ("auto"), "zero1", "zero2", "fsdp", "hsdp": see `stretto strats`
  int dp_shard = 0;  // under hsdp: ranks that together hold one copy of the model; 0: the ranks of each host
  // Ranks, neighbours on one host, among which the layers of nn/tensor_parallel.h are divided. They train on
  // the same samples.
  int tp = 1;
  // These ranks, if tp is above 1, also divide the rows of tensors between layers.
  bool sequence_parallel = false;
  // "fp32" ("32-true"), "bf16" ("bf16-mixed"), "fp16" ("16-mixed") or "fp64" ("64-true")
  std::string precision = "fp32";
  LossScaleOptions loss_scale = {};  // with precision "fp16"
  double bucket_mb = 25;  // MiB; gradients are reduced in buckets of this size as they become ready
  // Matmul library of stretto::nn's layers on CPU: "auto" (the fastest, measured once per processor and
  // cached in the user's cache folder), "aten", "onednn", "mkl" or "stretto".
  std::string products = "auto";
};

// Limits for Lite::clip_gradients.
struct ClipOptions {
  double max_norm = 0;  // gradients are scaled down to this L2 norm; 0: no limit
  double clip_val = 0;  // elements are clamped to [-clip_val, clip_val]; 0: no limit
};

// The files that Lite::save writes, and the checkpoints that it keeps.
struct SaveOptions {
  int64_t step = 0;                                 // names the checkpoint: step-<N>
  nlohmann::json extra = nlohmann::json::object();  // returned by load()
  int64_t keep_last = 0;                            // number of newest checkpoints kept; 0: all
};

// How Lite::setup forms batches of a stretto dataset.
struct DatasetLoaderOptions {
  int64_t batch_size = 32;  // samples per batch, over all ranks
  bool shuffle = true;
  uint64_t seed = 0;
};

// Distributed training for a program with its own loop over its own torch::nn::Modules; see
// docs/guide/lite.md.
//
//   stretto::Lite lite({.devices = 2});
//   auto [model, optimizer] = lite.setup(Net(), optim::adamw({.lr = 5e-5}));
//   for (auto& batch : lite.setup(loader)) {
//     optimizer.zero_grad();
//     lite.backward(model->loss(batch));
//     optimizer.step();
//   }
//
// The result is that of a run on one rank, up to rounding: each batch of a loader is divided among the ranks,
// and after backward each gradient is that of the whole batch. Every rank must make the same calls in the
// same order; ranks that diverge throw a DistributedError that names them. An exception that leaves main()
// terminates the rank with its message and exit code 1, or 2 for a ConfigError or a DataError, after which
// `stretto launch` does not restart. At most one Lite may exist at a time. Not thread-safe.
class Lite {
 public:
  // Construct it first in main(): a program that was started without a launcher is started again once per
  // rank, and every rank repeats the code before it. Throws ConfigError for options that are invalid or not
  // supported here.
  explicit Lite(const LiteOptions& options = {});
  ~Lite();
  Lite(const Lite&) = delete;
  Lite& operator=(const Lite&) = delete;

  // --- rank and device

  int global_rank() const;
  int local_rank() const;
  int node_rank() const;
  int world_size() const;
  bool is_global_zero() const { return global_rank() == 0; }
  at::Device device() const;
  // All ranks, and groups of them along its axes: Axes::data and, with LiteOptions::tp, Axis::tp.
  const Mesh& mesh() const;
  // The ranks among which batches are divided, and those among which layers are:
  //   auto net = std::make_shared<Net>(nn::TensorParallel::of(lite.tensor_parallel()));
  AxisRanks data_parallel() const { return mesh().data_parallel(); }
  AxisRanks tensor_parallel() const { return mesh().tensor_parallel(); }

  // --- set-up

  // Moves the model to the device, broadcasts rank 0's parameters and buffers, and binds the optimizers to
  // the model. Returns the model in the passed form (a shared_ptr, a torch module holder, or a reference to a
  // module that the caller owns) and a LiteOptimizer for each optimizer: one of stretto's, or any number of
  // torch's, passed by reference or moved. The model must not be replaced, moved or given further parameters
  // afterwards. After the first setup, each rank has its own random number sequence, which ranks with parts
  // of the same layers have in common. A model whose layers are divided needs one of stretto's optimizers,
  // and its parts must have the values of one whole model (nn::fill_parameters with nn::initial_values).
  // Throws ConfigError naming the parameter if one cannot be trained or was already set up, and, with
  // LiteOptions::tp, for a model to train none of whose layers is divided; with
  // LiteOptions::sequence_parallel, for one none of whose layers divides rows.
  template <class M, class... Optimizers>
  requires lite::ModuleLike<std::remove_cvref_t<M>>
  auto setup(M&& model, Optimizers&&... optimizers);

  // A range over this rank's shares of the loader's batches, on this rank's device. Each loop over it is one
  // epoch. `loader`: a torch data loader or any range of batches (stretto/lite/batch.h lists the supported
  // types), which must outlive the result; or a unique_ptr to one, which may be moved in. Each rank reads the
  // whole batch and keeps its share; make_data_loader() reads only the share.
  template <lite::BatchRange Loader>
  LiteLoader<Loader> setup(Loader& loader, Distribute distribute = Distribute::split);
  template <lite::BatchRange Loader>
  LiteLoader<Loader> setup(const std::unique_ptr<Loader>& loader, Distribute distribute = Distribute::split);
  template <lite::BatchRange Loader>
  LiteLoader<Loader> setup(std::unique_ptr<Loader>&& loader, Distribute distribute = Distribute::split);
  template <class Source>
  void setup(LiteLoader<Source>&, Distribute = Distribute::split) {
    static_assert(!std::same_as<Source, Source>, "Lite::setup: this loader was already set up; loop over it");
  }

  // torch::data::make_data_loader() followed by setup(), except that each rank reads only its share.
  // options.batch_size counts samples over all ranks. Throws ConfigError if options.enforce_ordering is off.
  template <class Dataset, class Sampler, class Options = torch::data::DataLoaderOptions>
  auto make_data_loader(Dataset dataset, Sampler sampler, std::type_identity_t<Options> options);
  template <class Sampler = torch::data::samplers::RandomSampler, class Dataset,
            class Options = torch::data::DataLoaderOptions>
  auto make_data_loader(Dataset dataset, std::type_identity_t<Options> options);

  // Packed batches of a stretto dataset, which must outlive the result.
  LiteLoader<lite::DatasetBatches> setup(const data::Dataset& dataset, const DatasetLoaderOptions& options);

  // --- a step

  // Replaces loss.backward(). Afterwards parameter.grad() is, on every rank, the gradient of the whole global
  // batch. `loss`: the mean over this rank's batch, a scalar. It is weighted by the number of samples in the
  // current batch; outside a loop over a loader all ranks have equal weight, and a warning is logged once.
  // Gradients accumulate until zero_grad(), as in torch: a program that accumulates over several batches
  // divides its losses itself. Returns the mean loss over the global batch; under no_backward_sync this
  // rank's loss. `keep_graph`: as in torch.
  double backward(const Tensor& loss, bool keep_graph = false);

  // Like backward(Tensor), for a loss given as a sum and a count of samples or tokens. Gradients are divided
  // by the count over all ranks and over all backward calls since the last synchronising one: do not divide
  // for accumulation.
  double backward(const Loss& loss, bool keep_graph = false);

  // During the lifetime of the guard, backward accumulates gradients without reducing them over ranks. The
  // last backward before a step must run outside the guard. With enabled = false the guard does nothing.
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

  // Number of this rank's samples in the current batch; 0 if the rank has a dummy batch because there are
  // fewer samples than ranks. It serves metrics that a program accumulates itself.
  int64_t sample_count() const { return loop().share() ? loop().share()->count : 0; }

  // Clips the gradients of a model; call it between backward and step. Returns their L2 norm before clipping.
  // Throws Error naming the parameter if the norm is not finite; in fp16 it returns that norm, and the step
  // is skipped.
  template <class M>
  double clip_gradients(const M& model, const ClipOptions& options) {
    return clip(find(lite::module_of(model)), options);
  }

  // The loss scale of the next backward; 1 unless the precision is fp16. Gradients are unscaled after
  // backward; an overflow is found by the optimizer's step, which is then skipped and lowers the scale.
  double loss_scale() const;

  // Enables autocast to the run's precision for the lifetime of the guard; in a loop over a loader that was
  // set up it is enabled already. Does nothing in fp32 and fp64.
  std::unique_ptr<Autocast> autocast();

  // --- collectives

  // Over all ranks; those with parts of the same layers each count: data_parallel() has collectives over
  // samples. Tensors of any shape, which is the same on all ranks. The results are new tensors of that shape;
  // all_gather returns [world_size, ...]. Without an operation, all_reduce computes the mean, as in Fabric.
  // All of them throw DistributedError if ranks make different calls. Collective.
  Tensor all_gather(const Tensor& tensor);
  Tensor all_reduce(const Tensor& tensor);
  Tensor all_reduce(const Tensor& tensor, ReduceOp op);
  double all_reduce(double value);
  double all_reduce(double value, ReduceOp op);
  Tensor broadcast(const Tensor& tensor, int source = 0);
  std::string broadcast(const std::string& bytes, int source = 0);
  void barrier();

  // Rank 0 runs the guarded block first, for example to download or to fill a cache; the other ranks enter it
  // when rank 0 has left it.
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

  // --- utilities

  // A copy of `value` with every tensor on this rank's device.
  template <class T>
  T to_device(T value) const {
    lite::for_each_tensor(value, [&](Tensor& tensor) { tensor = tensor.to(device()); });
    return value;
  }

  // Prints a line to standard output on rank 0 only.
  template <class... Args>
  void print(fmt::format_string<Args...> text, Args&&... args) const {
    if (!is_global_zero()) return;
    log::print(fmt::format(text, std::forward<Args>(args)...));
  }

  // Seeds torch's generators: the same on all ranks until the first model is set up, afterwards different on
  // ranks with other samples (see setup). Collective.
  void seed_everything(uint64_t seed);

  // --- files

  // Makes save() and load() include the scheduler's counter of steps; without it, a torch::optim::StepLR
  // starts to count from 0 when a run is resumed. Call it before load(), for all schedulers in the same order
  // as in the run that saved. `scheduler` must outlive the Lite's last save() or load().
  void register_for_checkpointing(torch::optim::LRScheduler& scheduler);

  // Atomically saves models, optimizers, random number generators and `extra` to <folder>/step-<N>, to be
  // loaded by any number of ranks. Broadcasts rank 0's buffers first. Returns the checkpoint's folder. Throws
  // IoError. Collective.
  std::filesystem::path save(const std::filesystem::path& folder, const SaveOptions& options);

  // Loads a checkpoint, or the newest valid one in a folder of checkpoints, into the models and optimizers
  // that were set up. Returns its `extra`; nullopt if the folder contains no checkpoint. Throws DataError if
  // the checkpoint does not fit the model. Collective.
  std::optional<nlohmann::json> load(const std::filesystem::path& folder);

  // Rank 0 writes a .safetensors file; all ranks wait. Throws IoError on all ranks. Collective.
  void save_tensors(const std::filesystem::path& path, const NamedTensors& tensors);
  // Reads a .safetensors file onto this rank's device. Every rank reads the file.
  NamedTensors load_tensors(const std::filesystem::path& path) const;

 private:
  // Number of optimizers of each kind passed for a model.
  struct OptimizerCounts {
    int own = 0;
    int torch = 0;
  };
  lite::Model& add_model(const torch::nn::Module& module, const OptimizerCounts& counts,
                         std::unique_ptr<optim::Optimizer> optimizer);
  void choose_matmul_libraries(const torch::nn::Module& module, Precision precision);
  lite::Model& find(const torch::nn::Module& module);
  LiteOptimizer add_optimizer(lite::Model& model);  // the engine's own
  LiteOptimizer add_optimizer(lite::Model& model, std::shared_ptr<torch::optim::Optimizer> optimizer);
  template <class O>
  LiteOptimizer bind(lite::Model& model, O&& optimizer);
  double run_backward(const Tensor& loss, double weight, std::optional<double> count, bool keep_graph);
  void check_other_leaves(const std::vector<Tensor>& leaves);
  double clip(lite::Model& model, const ClipOptions& options);
  State state(std::optional<std::set<std::string>> stored = std::nullopt);
  lite::Loop& loop() const;
  void warn_once(bool& warned, const std::string& text) const;

  std::unique_ptr<lite::Session> session_;
  int no_sync_ = 0;
  bool autocast_was_used_ = false;  // since the last backward
  bool warned_equal_weights_ = false;
  bool warned_other_leaf_ = false;
};

template <class M, class... Optimizers>
requires lite::ModuleLike<std::remove_cvref_t<M>>
auto Lite::setup(M&& model, Optimizers&&... optimizers) {
  constexpr int own =
      (0 + ... + int{std::same_as<std::remove_cvref_t<Optimizers>, std::unique_ptr<optim::Optimizer>>});
  constexpr int given = sizeof...(Optimizers);
  std::unique_ptr<optim::Optimizer> optimizer;  // stretto's own, owned by the model's engine
  [[maybe_unused]] const auto take = [&](auto&& each) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(each)>, std::unique_ptr<optim::Optimizer>>)
      optimizer = std::forward<decltype(each)>(each);
  };
  (take(std::forward<Optimizers>(optimizers)), ...);
  lite::Model& added = add_model(lite::module_of(model), {own, given - own}, std::move(optimizer));
  // A module is returned by reference; handles are returned by value.
  constexpr bool is_module = std::derived_from<std::remove_cvref_t<M>, torch::nn::Module>;
  static_assert(
      !is_module || std::is_lvalue_reference_v<M>,
      "Lite::setup does not own modules: pass a shared_ptr, a module holder, or an lvalue that outlives the Lite");
  using Result = std::conditional_t<is_module, M, std::remove_cvref_t<M>>;
  if constexpr (given == 0) {
    return Result(std::forward<M>(model));
  } else {
    // A braced list evaluates its elements in order: optimizers are bound in the order of the arguments.
    // take() moved only those that bind() does not read: NOLINTBEGIN(bugprone-use-after-move)
    return std::tuple<Result, decltype(bind(added, std::forward<Optimizers>(optimizers)))...>{
        std::forward<M>(model), bind(added, std::forward<Optimizers>(optimizers))...};
    // NOLINTEND(bugprone-use-after-move)
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
        model, std::shared_ptr<torch::optim::Optimizer>(std::make_shared<Type>(std::forward<O>(optimizer))));
  }
}

template <lite::BatchRange Loader>
LiteLoader<Loader> Lite::setup(Loader& loader, Distribute distribute) {
  const std::shared_ptr<Loader> borrowed(&loader, [](Loader*) {});
  return LiteLoader<Loader>(borrowed, loop().record(&loader), loop(), distribute);
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
  return LiteLoader<Loader>(owned, loop().record(nullptr), loop(), distribute);
}

template <class Dataset, class Sampler, class Options>  // NOLINTNEXTLINE(performance-unnecessary-value-param)
auto Lite::make_data_loader(Dataset dataset, Sampler sampler, std::type_identity_t<Options> options) {
  if (!options.enforce_ordering()) {
    throw ConfigError(
        "Lite::make_data_loader: enforce_ordering(false) would mix up the ranks' shares; use enforce_ordering(true)");
  }
  auto shares = std::make_shared<lite::ShareQueue>();
  lite::SplitSampler<Sampler> split(std::move(sampler), loop().data_rank(), loop().data_ranks(),
                                    options.drop_last(), shares);
  auto loader = lite::torch_data_loader(std::move(dataset), std::move(split), options.drop_last(false));
  using Loader = typename decltype(loader)::element_type;
  const std::shared_ptr<Loader> owned(std::move(loader));
  return LiteLoader<Loader>(owned, loop().record(nullptr), loop(), Distribute::split, shares);
}

template <class Sampler, class Dataset, class Options>
auto Lite::make_data_loader(Dataset dataset, std::type_identity_t<Options> options) {
  const auto size = dataset.size();
  if (!size) throw ConfigError("Lite::make_data_loader: the dataset does not know its size; pass a sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), options);
}

}  // namespace stretto
