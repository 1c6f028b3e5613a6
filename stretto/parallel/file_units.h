#pragma once

#include <map>
#include <vector>

#include "stretto/nn/block_observer.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/block_order.h"

namespace stretto::parallel {

// The parameters of a rank that has all of them, in files (tensor/file_memory.h): those of a block are left
// to the file after each of its passes, and those of the next block are read ahead while it computes, once
// the order of blocks is known from an earlier pass. Parameters outside blocks stay in memory.
class FileUnits : public nn::BlockObserver {
 public:
  // Observes the blocks of `root`. REQUIRES: the arena's parameters are in files, and not sharded.
  FileUnits(torch::nn::Module& root, const Arena& arena);
  ~FileUnits() override;
  FileUnits(const FileUnits&) = delete;
  FileUnits& operator=(const FileUnits&) = delete;

  void before_forward(nn::Block& block) override { open(block, 0); }
  void after_forward(nn::Block& block) noexcept override { close(block); }
  void before_backward(nn::Block& block) override { open(block, 1); }
  void after_backward(nn::Block& block) noexcept override { close(block); }

 private:
  void each_part(const nn::Block& block, void (*use)(const Tensor&)) const;
  void open(const nn::Block& block, size_t pass);
  void close(const nn::Block& block) noexcept;

  const Arena& arena_;
  std::vector<nn::Block*> blocks_;
  std::map<const nn::Block*, std::vector<Range>> elements_of_;
  BlockOrder order_;
};

}  // namespace stretto::parallel
