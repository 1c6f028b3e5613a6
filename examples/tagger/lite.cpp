#include "words.h"

#include "stretto/stretto.h"

int main() {
  stretto::Lite lite;
  torch::manual_seed(1);
  std::vector<Sentences> data = make_sentences(301, 20);
  auto [model, optimizer] = lite.setup(Tagger(), stretto::optim::adamw({.lr = 1e-2, .weight_decay = 0}));
  for (int epoch = 1; epoch <= 4; ++epoch) {
    for (auto& batch : lite.setup(data)) {
      optimizer.zero_grad();
      auto sum = loss_sum(model->forward(batch.words, batch.lengths), batch.tags);
      lite.backward(stretto::Loss{sum, count_words(batch.tags)});
      optimizer.step();
    }
    lite.print("epoch {} | {}", epoch, evaluate(model, data));
  }
}
