#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include <ATen/Parallel.h>

#include "stretto/config/recipe.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/optim/registry.h"
#include "stretto/tensor/memory.h"

// optimizers_bench: a step of each optimizer over the parameters of MiniLM (22.7 M, fp32) on one core, in
// milliseconds and in GB/s read and written: parameters, gradients (which the step zeroes) and state; and
// copying one buffer. Prints JSON.
namespace stretto {
namespace {

constexpr int64_t elements = 30522 * 384 + 18 * 1536 * 384 + 376'704;
const std::vector<std::string> types = {"Adam", "AdamW", "Adadelta", "Adagrad", "Adamax", "Adafactor",
                                        "ASGD", "NAdam", "RAdam",    "RMSprop", "Rprop",  "SGD"};

double median_ms(int repeats, const std::function<void()>& work) {
  std::vector<double> times;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

std::vector<optim::ParameterPiece> pieces() {
  std::vector<optim::ParameterPiece> pieces;
  int64_t begin = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    pieces.push_back({.name = name, .layout = {shape}, .begin = begin, .end = begin + count});
    begin += count;
  };
  add("words", {30522, 384});
  for (int layer = 0; layer < 18; ++layer) add(fmt::format("layer{}", layer), {1536, 384});
  add("rest", {376'704});
  return pieces;
}

void measure() {
  at::set_num_threads(1);
  const Allocator allocator = plain_memory();
  double copy_ms = 0;
  {
    const Tensor from = at::ones({elements}), to = at::zeros({elements});
    copy_ms = median_ms(21, [&] { Tensor(to).copy_(from); });
  }
  std::string rows;
  for (const std::string& type : types) {
    const auto buffer = [&] { return allocator(elements, at::kFloat, at::kCPU); };
    const optim::Buffers buffers = {buffer(), buffer(), {}};
    buffers.master.normal_();
    OptimizerConfig choice;
    choice.type = type;
    const auto optimizer = optim::make_optimizer(choice);
    optimizer->bind(buffers, pieces(), allocator);
    const auto step = [&] { optimizer->step({.lr = 5e-5}, 1); };
    buffers.grad.fill_(1e-3);
    step();
    const double ms = median_ms(15, step);
    const double bytes = 16.0 * elements + 2.0 * static_cast<double>(optimizer->state_bytes());
    rows += fmt::format("{}\"{}\": {{\"ms\": {:.3f}, \"gb_s\": {:.3f}}}", rows.empty() ? "" : ", ", type, ms,
                        bytes / ms / 1e6);
  }
  fmt::print("{{\"copy_gb_s\": {:.3f}, \"steps\": {{{}}}}}\n", 8.0 * elements / copy_ms / 1e6, rows);
}

}  // namespace
}  // namespace stretto

int main() { stretto::measure(); }
