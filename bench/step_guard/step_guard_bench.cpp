#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "stretto/kernels/sum_of_squares.h"
#include "stretto/trainer/step_guard.h"

// step_guard_bench: the cost of checking a step before it is taken, with gradients of MiniLM's size (22.7 M, fp32) on one core:
// the pass over the gradients, whose norm clipping and the log need anyway, and the decision itself.
namespace stretto {
namespace {

template <class Function>
double median_microseconds(Function&& function) {
  std::vector<double> times;
  for (int repeat = 0; repeat < 101; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    function();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::nth_element(times, times.begin() + 50);
  return times[50];
}

void measure() {
  const Tensor gradients = at::randn({22'713'216});
  double sum = 0;
  const double pass = median_microseconds([&] { sum += kernels::sum_of_squares(gradients); });
  TrainingConfig config;
  config.on_spike = "skip";
  StepGuard guard(config);
  int64_t step = 0;
  const double judgement = median_microseconds([&] { guard.judge(1, sum > 0 ? 1 : 0, ++step, ""); });
  fmt::print("pass over the gradients {:.2f} ms, decision {:.2f} us\n", pass / 1000, judgement);
}

}  // namespace
}  // namespace stretto

int main() { stretto::measure(); }
