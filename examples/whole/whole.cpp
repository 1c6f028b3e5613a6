// A complete program with Lite: accumulation, validation and checkpoints. See docs/guide/lite.md.
//
//   whole FOLDER EPOCHS     trains to EPOCHS epochs, from the newest checkpoint in FOLDER if there is one

#include "bars.h"

#include "stretto/stretto.h"

int main(int argc, char** argv) {
  stretto::Lite lite;
  const std::filesystem::path folder = argc > 1 ? argv[1] : "whole";
  const int epochs = argc > 2 ? std::stoi(argv[2]) : 4;
  torch::manual_seed(1);
  auto pictures = Bars(501).map(torch::data::transforms::Stack<>());
  auto train = lite.make_data_loader(pictures, torch::data::DataLoaderOptions(32));
  auto test = lite.setup(torch::data::make_data_loader(Bars(99).map(torch::data::transforms::Stack<>()), 32));
  Net net;
  auto [model, optimizer] = lite.setup(net, torch::optim::AdamW(net->parameters(), 2e-3));

  // After setup. Restores models, optimizers, random numbers, and this program's own values.
  int first = 1;
  double best = 0;
  if (const auto extra = lite.load(folder)) {
    first = extra->at("epoch").get<int>() + 1;
    extra->at("best").get_to(best);
  }
  for (int epoch = first; epoch <= epochs; ++epoch) {
    optimizer.set_lr(2e-3 / epoch);
    int64_t step = 0;
    for (auto& batch : train) {
      // Gradients of two batches per step.
      const bool steps = ++step % 2 == 0;
      const auto guard = lite.no_backward_sync(!steps);
      const auto loss = torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target);
      lite.backward(loss / 2);
      if (!steps) continue;
      optimizer.step();
      optimizer.zero_grad();
    }

    // Each rank evaluates its share of every batch; the totals are sums over the ranks.
    torch::NoGradGuard no_grad;
    double correct = 0, count = 0;
    for (auto& batch : test) {
      if (lite.sample_count() == 0) continue;  // a dummy batch: fewer samples than ranks
      correct += model->forward(batch.data).argmax(1).eq(batch.target).sum().item<double>();
      count += static_cast<double>(lite.sample_count());
    }
    correct = lite.all_reduce(correct, stretto::ReduceOp::sum);
    count = lite.all_reduce(count, stretto::ReduceOp::sum);
    const double accuracy = correct / count;
    lite.print("epoch {} | {} of {} right", epoch, correct, count);

    // One rank writes the program's own files; every rank calls save().
    if (accuracy > best && lite.is_global_zero()) torch::save(net, folder.string() + "-best.pt");
    best = std::max(best, accuracy);
    lite.save(folder, {.step = epoch, .extra = {{"epoch", epoch}, {"best", best}}, .keep_last = 2});
  }
}
