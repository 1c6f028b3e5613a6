#pragma once

#include "stretto/stretto.h"

// Sequences of words, and a network whose layers are divided among ranks, by the public layers of
// nn/tensor_parallel.h. The first word's number modulo 5 is the class of a sequence.

constexpr int64_t words = 50, length = 8, inner = 64, classes = 5;

inline at::Tensor words_of(int64_t sequence) { return (at::arange(length) * 7 + sequence * 3) % words; }

struct Net : torch::nn::Module {
  explicit Net(const stretto::nn::TensorParallel& ranks) {
    using namespace stretto::nn;
    table = register_module("table", std::make_shared<VocabularyEmbedding>(words, 32, ranks));
    up = register_module("up", std::make_shared<ColumnLinear>(length * 32, inner, ranks));
    down = register_module("down", std::make_shared<RowLinear>(inner, classes, ranks));
  }

  // ids [B, length] -> this rank's columns of the inner states [B, inner]
  at::Tensor states(const at::Tensor& ids) const {
    const at::Tensor vectors = table->forward(ids.flatten()).view({ids.size(0), -1});
    return stretto::nn::activate(up->forward(vectors), stretto::nn::Activation::relu);
  }
  // ids [B, length] -> logits [B, classes], equal on all ranks
  at::Tensor forward(const at::Tensor& ids) const { return down->forward(states(ids)); }

  std::shared_ptr<stretto::nn::VocabularyEmbedding> table;
  std::shared_ptr<stretto::nn::ColumnLinear> up;
  std::shared_ptr<stretto::nn::RowLinear> down;
};
