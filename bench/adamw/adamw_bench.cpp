#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include <fmt/format.h>

#include <ATen/Parallel.h>

#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/memory.h"

// adamw_bench: AdamW steps over the parameters of MiniLM (22.7 M, fp32) on one core, in milliseconds, as
// JSON: all of them; with word embeddings of which each step uses the rows of 430 words, drawn from 14,000 by
// Zipf's law, like batches of 32 sentences of SST-2; and copying one buffer of that size, in GB/s read and
// written.
namespace stretto {
namespace {

constexpr int64_t rows = 30522, width = 384, dense = 22'713'216 - rows * width;

double median_seconds(int repeats, const std::function<void()>& work) {
  std::vector<double> times;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

struct Parameters {
  optim::Buffers buffers;
  std::unique_ptr<optim::Optimizer> optimizer = optim::adamw({.lr = 5e-5});

  explicit Parameters(int64_t row_width) {
    const Allocator allocator = plain_memory();
    const auto buffer = [&] { return allocator(dense + rows * width, at::kFloat, at::kCPU); };
    buffers = {buffer(), buffer(), {}};
    buffers.master.normal_();
    buffers.grad.fill_(1e-3);
    optimizer->bind(
        buffers,
        {{.name = "words", .layout = {{rows, width}}, .end = rows * width, .row_width = row_width},
         {.name = "rest", .layout = {{dense}}, .begin = rows * width, .end = dense + rows * width}},
        allocator);
  }
};

void measure() {
  at::set_num_threads(1);
  double copy = 0;
  {
    const Tensor from = at::ones({22'713'216}), to = at::zeros({22'713'216});
    copy = median_seconds(31, [&] { Tensor(to).copy_(from); });
  }
  Parameters all(0);
  const double whole = median_seconds(31, [&] { all.optimizer->step({.lr = 5e-5}, 1); });

  Parameters sparse(width);
  std::mt19937_64 random(1);
  const auto step = [&] {
    std::set<int64_t> drawn;
    for (int word = 0; word < 430; ++word)
      drawn.insert(static_cast<int64_t>(std::pow(14'000, std::generate_canonical<double, 53>(random))));
    const std::vector<int64_t> touched(drawn.begin(), drawn.end());
    sparse.optimizer->catch_up(0, touched);
    sparse.optimizer->step({.lr = 5e-5}, 1, {touched});
  };
  const int repeats = 2000;  // an epoch of SST-2, which includes the rows that catch up
  const auto start = std::chrono::steady_clock::now();
  for (int repeat = 0; repeat < repeats; ++repeat) step();
  sparse.optimizer->catch_up();
  const double by_rows =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
  const double bytes = 22'713'216 * 4.0;
  fmt::print(
      "{{\"copy_gb_s\": {:.3f}, \"step_ms\": {:.3f}, \"step_gb_s\": {:.3f}, \"sparse_step_ms\": {:.3f}}}\n",
      2 * bytes / copy / 1e9, whole * 1e3, 8 * bytes / whole / 1e9, by_rows * 1e3);
}

}  // namespace
}  // namespace stretto

int main() { stretto::measure(); }
