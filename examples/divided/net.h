#pragma once

#include "stretto/stretto.h"

// Sequences of words, and a network whose layers are divided among ranks, by the public layers of
// nn/tensor_parallel.h. The first word's number modulo 5 is the class of a sequence.

constexpr int64_t words = 50, length = 8, width = 32, inner = 64, classes = 5;

inline at::Tensor words_of(int64_t sequence) { return (at::arange(length) * 7 + sequence * 3) % words; }

struct Net : torch::nn::Module {
  explicit Net(const stretto::nn::TensorParallel& tensor_parallel) : ranks(tensor_parallel) {
    using namespace stretto::nn;
    table = register_module("table", std::make_shared<VocabularyEmbedding>(words, width, ranks));
    norm = register_module("norm", std::make_shared<LayerNormBetweenLayers>(width, /*eps=*/1e-5, ranks));
    up = register_module("up", std::make_shared<ColumnLinear>(width, inner, ranks));
    down = register_module("down", std::make_shared<RowLinear>(inner, width, ranks));
    head = register_module("head", std::make_shared<Linear>(length * width, classes));
  }

  // x [T, width], or this rank's rows of it -> this rank's columns of the inner states [T, inner]
  at::Tensor states(const at::Tensor& x) const {
    const at::Tensor normed = stretto::nn::norm(x, norm->all());
    return stretto::nn::activate(up->forward(normed), stretto::nn::Activation::relu);
  }

  // ids [B, length] -> vectors of words, [B * length, width], or this rank's rows of it
  at::Tensor embed(const at::Tensor& ids) const {
    return stretto::nn::own_rows(table->forward(ids.flatten()), ranks);
  }

  // x [B * length, width], or this rank's rows of it -> logits [B, classes], equal on all ranks
  at::Tensor classify(const at::Tensor& x) const {
    return head->forward(stretto::nn::join_rows(x, ranks).view({-1, length * width}));
  }

  // ids [B, length] -> logits [B, classes], equal on all ranks
  at::Tensor forward(const at::Tensor& ids) const {
    const at::Tensor x = embed(ids);
    return classify(x + down->forward(states(x)));
  }

  stretto::nn::TensorParallel ranks;
  std::shared_ptr<stretto::nn::VocabularyEmbedding> table;
  std::shared_ptr<stretto::nn::LayerNormBetweenLayers> norm;
  std::shared_ptr<stretto::nn::ColumnLinear> up;
  std::shared_ptr<stretto::nn::RowLinear> down;
  std::shared_ptr<stretto::nn::Linear> head;
};
