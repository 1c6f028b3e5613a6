#pragma once

#include <cstdint>
#include <vector>

namespace stretto::parallel {

struct EngineParts;

// The communication of a backward, which always adds gradients to those on this rank.
enum class Reduce : uint8_t {
  last,   // the last micro-batch of a step: they are summed over the ranks while it runs
  later,  // a backward with `last` follows, which sums them; where gradients are sharded they are summed now
  never,  // nothing is communicated under any strategy
};

// How often a backward will add to the gradient of each trainable parameter, by its index in
// EngineFacts::tensors.
using GradientUses = std::vector<int>;

// A pass of autograd through the parameters of one engine: during its lifetime, autograd may add to their
// gradients. Engine::open() creates it. A graph that reaches several engines needs a pass of each:
//
//   Backward pass = engine.open(engine.uses(loss), Reduce::last);
//   loss.backward();
//   pass.close();
class Backward {
 public:
  // If close() was not called, as after an exception, completes this rank's part in the reductions, so that
  // other ranks do not wait for it, and zeroes the gradients on this rank.
  ~Backward();
  Backward(Backward&& other) noexcept;
  Backward(const Backward&) = delete;
  Backward& operator=(const Backward&) = delete;
  Backward& operator=(Backward&&) = delete;

  // Call it after autograd. Starts the remaining reductions; Engine::finish() waits for those of
  // Reduce::last.
  void close();

 private:
  friend class Engine;
  Backward(EngineParts& engine, GradientUses uses, Reduce reduce);

  EngineParts* engine_;  // null after close()
  Reduce reduce_;
};

}  // namespace stretto::parallel
