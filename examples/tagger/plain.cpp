#include "words.h"

int main() {
  torch::manual_seed(1);
  std::vector<Sentences> data = make_sentences(301, 20);
  Tagger model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(0));
  for (int epoch = 1; epoch <= 4; ++epoch) {
    for (auto& batch : data) {
      optimizer.zero_grad();
      auto sum = loss_sum(model->forward(batch.words, batch.lengths), batch.tags);
      (sum / count_words(batch.tags)).backward();
      optimizer.step();
    }
    std::printf("epoch %d | %s\n", epoch, evaluate(model, data).c_str());
  }
}
