#include <algorithm>
#include <chrono>

#include "stretto/lite/lite.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/arena.h"

// The overhead of Lite: microseconds per step of a model with one parameter, with Lite and with a bare loop
// that makes the same collectives and the same optimizer step, alternately. Prints medians of rank 0 as JSON.
//
//   lite_bench [RANKS [STEPS]]
namespace stretto {
namespace {

struct Scale : torch::nn::Module {
  Tensor forward(const Tensor& x) { return (x * factor).sum(); }
  Tensor factor = register_parameter("factor", at::ones({1}));
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <class Step>
double microseconds(int steps, const Step& step) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) step();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / steps;
}

void run(int ranks, int steps) {
  Lite lite({.devices = ranks, .accelerator = "cpu"});
  Group& group = lite.mesh().world();
  const Tensor x = at::ones({1});

  auto [model, optimizer] = lite.setup(std::make_shared<Scale>(), optim::sgd({.lr = 1e-6}));
  const auto by_lite = [&, &model = model, &optimizer = optimizer] {
    optimizer.zero_grad();
    lite.backward(model->forward(x));
    optimizer.step();
  };

  Scale bare;
  parallel::Arena arena(parallel::collect_tensors(bare).trainable, {});
  const auto sgd = optim::sgd({.lr = 1e-6});
  sgd->bind(arena.owned_buffers(), arena.owned_pieces(), plain_memory());
  const Tensor local = at::zeros({9}, at::kDouble), all = at::zeros({group.size(), 9}, at::kDouble);
  const Tensor weight = at::full({}, 1.0 / group.size());
  const auto by_hand = [&] {
    const Tensor loss = bare.forward(x);
    local[3] = loss.item<double>();
    if (group.size() == 1) {
      loss.backward(weight);
    } else {
      Work told = group.all_gather(all, local);
      loss.backward(weight);
      Work reduced = group.all_reduce(arena.buffers().grad);
      told.wait();
      reduced.wait();
    }
    sgd->step({.lr = 1e-6}, 1);
  };

  std::vector<double> lite_times, hand_times;
  for (int turn = 0; turn < 11; ++turn) {
    const double a = microseconds(steps, by_lite), b = microseconds(steps, by_hand);
    if (turn == 0) continue;  // warms up
    lite_times.push_back(a);
    hand_times.push_back(b);
  }
  lite.print(R"({{"ranks": {}, "lite_us": {:.2f}, "bare_us": {:.2f}, "overhead_us": {:.2f}}})", group.size(),
             median(lite_times), median(hand_times), median(lite_times) - median(hand_times));
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) {
  stretto::run(argc > 1 ? std::stoi(argv[1]) : 2, argc > 2 ? std::stoi(argv[2]) : 2000);
}
