#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "stretto/tensor/tensor_source.h"

namespace stretto::parallel {

struct EngineParts;

// During its lifetime, the module has the averaged weights. Construction and destruction are collective.
class [[nodiscard]] AveragedWeights {
 public:
  ~AveragedWeights() noexcept(false);
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  friend class WeightView;
  explicit AveragedWeights(EngineParts* engine);
  EngineParts* engine_;  // null: nothing was exchanged
  int exceptions_ = std::uncaught_exceptions();
};

// The parameters of an engine at master precision, with frozen parameters and buffers, as saved in a model
// file. Cheap to copy; valid while the engine lives.
class WeightView {
 public:
  // Brings lazily stepped rows up to date. Call it before reading weights of the module other than by lookup;
  // the functions below call it themselves.
  void catch_up();

  // The weights by name. They are views of live memory unless they had to be gathered; every rank then has
  // all of them in memory. Collective.
  NamedTensors all();
  // Calls `use` with the weights on the first rank. The other ranks send the values that they hold when `use`
  // reads them, in any order and any number of times, so that no rank needs memory for all weights.
  // Collective: the other ranks return when `use` has returned or thrown.
  void at_first(const std::function<void(const ListedSource&)>& use);
  // The first trainable parameter whose weights contain NaN or infinity, or "". Collective.
  std::string first_nonfinite();

  // Exchanges the weights and their average, for evaluating or saving it, until the result is destroyed. Does
  // nothing if `use` is false or the engine keeps no average.
  AveragedWeights averaged(bool use);

  // A hash of a few elements of each trainable parameter, of which any step changes some; 0 on devices other
  // than CPUs.
  uint64_t fingerprint() const;

 private:
  friend class Engine;
  explicit WeightView(EngineParts& engine) : engine_(&engine) {}
  NamedTensors others() const;
  NamedTensors named(const Tensor& master) const;

  EngineParts* engine_;
};

}  // namespace stretto::parallel
