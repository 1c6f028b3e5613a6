#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/nn/block_observer.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/block_order.h"
#include "stretto/parallel/scratch_buffers.h"

namespace stretto::parallel {

// The values of sharded parameters. Those of a block are gathered before its forward and again before its
// backward, and released after each; without `reshard_after_forward` they are kept from a forward with
// gradients until the backward. While a block computes, the next one is gathered, once the order of blocks is
// known from an earlier pass. Parameters outside blocks are gathered after each step and kept.
// Forward and backward are collective: every rank of the group must run the same blocks in the same order.
class GatheredUnits : public nn::BlockObserver {
 public:
  // Observes the blocks of `root`. `in_files`: the arena's parameters are in files (tensor/file_memory.h);
  // this rank's part of a block is then left to the file after it was sent, and read ahead. REQUIRES: the
  // arena shards parameters over `group`.
  GatheredUnits(torch::nn::Module& root, Arena& arena, Group& group, bool reshard_after_forward = true,
                bool in_files = false);
  ~GatheredUnits() override;
  GatheredUnits(const GatheredUnits&) = delete;
  GatheredUnits& operator=(const GatheredUnits&) = delete;

  // Call it after the owned values have changed. Collective. REQUIRES: no forward or backward is in progress.
  void refresh();

  void before_forward(nn::Block& block) override { open(block, 0); }
  void after_forward(nn::Block& block) noexcept override;
  void before_backward(nn::Block& block) override { open(block, 1); }
  void after_backward(nn::Block& block) noexcept override { close(block, /*keep=*/false); }

 private:
  struct Unit {
    bool owned = false;  // this rank owns the whole unit, so that its values are always available
    int users = 0;       // passes in progress that read it
    bool begun = false;  // gathering has begun, and may be complete
    Tensor buffer = {};
    std::vector<Work> works = {};
  };

  void open(const nn::Block& block, size_t pass);
  void close(const nn::Block& block, bool keep) noexcept;
  void gather_ahead(const nn::Block& block, size_t pass);
  void begin(size_t unit);
  void finish(size_t unit);
  void release(size_t unit);
  void leave_owned(size_t unit) const;
  void read_owned_ahead(const nn::Block* block) const;
  Tensor owned_part(size_t unit) const;

  Arena& arena_;
  Group& group_;
  const bool reshard_after_forward_, in_files_;
  ScratchBuffers buffers_;
  std::vector<nn::Block*> blocks_;
  std::map<const nn::Block*, std::vector<size_t>> units_of_;
  std::vector<Unit> units_;
  std::vector<size_t> resident_;  // units outside blocks
  std::vector<size_t> ahead_;     // units that are gathered before a block needs them
  BlockOrder order_;
};

}  // namespace stretto::parallel
