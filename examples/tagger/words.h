#pragma once

#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/rnn.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

// Padded sentences of random words; a word's tag is 1 if the word before it is even.
struct Sentences {
  torch::Tensor words;    // [B, T]
  torch::Tensor tags;     // [B, T]; -100 for padding
  torch::Tensor lengths;  // [B]
};
inline auto lite_fields(Sentences& batch) { return std::tie(batch.words, batch.tags, batch.lengths); }

inline std::vector<Sentences> make_sentences(int64_t count, int64_t batch_size) {
  const at::Generator random = at::detail::createCPUGenerator(7);
  std::vector<Sentences> batches;
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    const int64_t size = std::min(batch_size, count - begin);
    const torch::Tensor lengths = torch::randint(2, 13, {size}, random, torch::kLong);
    const torch::Tensor words = torch::randint(1, 50, {size, 12}, random, torch::kLong);
    const torch::Tensor before = torch::constant_pad_nd(words.slice(1, 0, 11), {1, 0}, 1);
    const torch::Tensor padding = torch::arange(12).unsqueeze(0).ge(lengths.unsqueeze(1));
    batches.push_back({words.masked_fill(padding, 0),
                       before.remainder(2).eq(0).to(torch::kLong).masked_fill(padding, -100), lengths});
  }
  return batches;
}

struct TaggerImpl : torch::nn::Module {
  // [B, T] words of `lengths` [B] -> [B, T, 2] scores.
  torch::Tensor forward(const torch::Tensor& words, const torch::Tensor& lengths) {
    namespace rnn = torch::nn::utils::rnn;
    const auto packed =
        rnn::pack_padded_sequence(embedding->forward(words), lengths.cpu(), /*batch_first=*/true,
                                  /*enforce_sorted=*/false);
    const auto [states, unused] = rnn::pad_packed_sequence(
        std::get<0>(lstm->forward_with_packed_input(packed)), /*batch_first=*/true, 0, words.size(1));
    return scores->forward(states);
  }
  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(50, 16));
  torch::nn::LSTM lstm =
      register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(16, 16).batch_first(true)));
  torch::nn::Linear scores = register_module("scores", torch::nn::Linear(16, 2));
};
TORCH_MODULE(Tagger);

// The sum of the losses of all words.
inline torch::Tensor loss_sum(const torch::Tensor& scores, const torch::Tensor& tags) {
  const auto options =
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-100).reduction(torch::kSum);
  return torch::nn::functional::cross_entropy(scores.flatten(0, 1), tags.flatten(), options);
}
inline double count_words(const torch::Tensor& tags) { return tags.ne(-100).sum().item<double>(); }

// Mean loss per word over all sentences, as a line.
inline std::string evaluate(Tagger model, const std::vector<Sentences>& data) {
  torch::NoGradGuard no_grad;
  double sum = 0, words = 0;
  const torch::Device device = model->scores->weight.device();
  for (const Sentences& batch : data) {
    const torch::Tensor scores = model->forward(batch.words.to(device), batch.lengths).cpu();
    sum += loss_sum(scores, batch.tags).item<double>();
    words += count_words(batch.tags);
  }
  char line[80];
  std::snprintf(line, sizeof line, "loss %.5f", sum / words);
  return line;
}
