#pragma once

#include <functional>
#include <string>

#include "stretto/tensor/safetensors.h"

namespace stretto::parallel {

struct EngineParts;

// The gradients of an engine's trainable parameters. Unless stated otherwise they are those that
// Engine::finish() has completed. Cheap to copy; valid while the engine lives.
class GradientView {
 public:
  // L2 norm over all parameters, the same on all ranks. Collective.
  double norm() const;
  // The first parameter whose gradient contains NaN or infinity, or "". Collective.
  std::string first_nonfinite() const;
  // Whether all gradients on this rank are finite, whether reduced or not.
  bool own_are_finite() const;

  // [N] the reduced gradients on this rank: all, or those of its shard (EngineOptions::gradients_to_owners).
  Tensor held() const;
  // The gradients multiplied by `factor`, by parameter, on every rank, which needs memory for all of them.
  // Collective.
  NamedTensors by_name(double factor) const;

  void scale(double factor);
  void clamp(double limit);  // each element to [-limit, limit]
  void clear();
  // Zeroes the gradients of the parameters for which `which`, called with their index in
  // EngineFacts::tensors, returns true; on every rank.
  void clear(const std::function<bool(size_t parameter)>& which);

  // Adds the gradients of the parameters for which `which` returns true to those that are set aside for them,
  // and zeroes all gradients. REQUIRES: no sparse tables (EngineOptions::lazy_rows).
  void set_aside(const std::function<bool(size_t parameter)>& which);
  // Adds those that are set aside for these parameters to the gradients; none are set aside for them then.
  void restore(const std::function<bool(size_t parameter)>& which);

  // Replaces gradients that were dropped (zero_grad() of a module, with its default) by zeros. Returns their
  // number, or the number of all parameters if every gradient that had memory was dropped. Throws Error
  // naming a parameter that was replaced.
  size_t restore_dropped();

 private:
  friend class Engine;
  explicit GradientView(EngineParts& engine) : engine_(&engine) {}
  EngineParts* engine_;
};

// The factor that clips gradients of this norm to `max_norm`, as in torch's clip_grad_norm_: max_norm / (norm
// + 1e-6), or 1 if norm <= max_norm. max_norm 0: no limit.
double clip_scale(double norm, double max_norm);

}  // namespace stretto::parallel
