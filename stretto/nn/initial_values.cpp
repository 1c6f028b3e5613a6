#include "stretto/nn/initial_values.h"

#include <array>
#include <cmath>
#include <numbers>

#include <ATen/Parallel.h>

#include "stretto/base/hash.h"
#include "stretto/base/philox.h"

namespace stretto::nn {
namespace {

using Values = std::array<float, 4>;  // of global elements 4n, 4n + 1, 4n + 2 and 4n + 3

std::array<uint32_t, 4> words(int64_t block, uint64_t key) {
  const auto number = static_cast<uint64_t>(block);
  return philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0}, key);
}

// Two normally distributed values (Box and Muller 1958).
void normal_pair(uint32_t first, uint32_t second, float* values) {
  const float uniform = static_cast<float>((first >> 8) + 1) * 0x1p-24F;  // in (0, 1]
  const float radius = std::sqrt(-2 * std::log(uniform));
  const float angle = static_cast<float>(second >> 8) * (0x1p-23F * std::numbers::pi_v<float>);
  values[0] = radius * std::cos(angle);
  values[1] = radius * std::sin(angle);
}

// Calls `draw` for each block of four global elements, and writes the values of the local ones.
template <class Draw>
void fill(const Tensor& parameter, const TensorLayout& layout, const Draw& draw) {
  at::NoGradGuard no_grad;
  const bool direct =
      parameter.scalar_type() == at::kFloat && parameter.is_cpu() && parameter.is_contiguous();
  const Tensor values = direct ? parameter : at::empty(parameter.sizes(), at::kFloat);
  auto* const data = values.mutable_data_ptr<float>();
  for (const LocalRun& run : layout.runs()) {
    const auto write = [&](int64_t begin, int64_t end) {
      int64_t element = run.global + begin;
      float* target = data + run.local + begin;
      for (const float* const last = data + run.local + end; target < last;) {
        const Values four = draw(element / 4);
        for (int64_t lane = element % 4; lane < 4 && target < last; ++lane, ++element)
          *target++ = four[static_cast<size_t>(lane)];
      }
    };
    at::parallel_for(0, run.elements, /*grain_size=*/1 << 15, write);
  }
  if (!direct) parameter.copy_(values);
}

}  // namespace

uint64_t initial_key(uint64_t seed, const std::string& name) { return hash64(name, seed); }

void fill_normal(const Tensor& parameter, const TensorLayout& layout, uint64_t key, double std) {
  const auto scale = static_cast<float>(std);
  fill(parameter, layout, [key, scale](int64_t block) {
    const auto random = words(block, key);
    Values values{};
    normal_pair(random[0], random[1], values.data());
    normal_pair(random[2], random[3], values.data() + 2);
    for (float& value : values) value *= scale;
    return values;
  });
}

void fill_uniform(const Tensor& parameter, const TensorLayout& layout, uint64_t key, double bound) {
  const auto scale = static_cast<float>(bound);
  fill(parameter, layout, [key, scale](int64_t block) {
    Values values{};
    const auto random = words(block, key);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = (static_cast<float>(random[i] >> 8) * 0x1p-23F - 1) * scale;
    return values;
  });
}

void zero_elements(const Tensor& parameter, const TensorLayout& layout, const Range& zeros) {
  at::NoGradGuard no_grad;
  for (const LocalRun& run : layout.runs()) {
    const Range here = (Range{run.global, run.global + run.elements} & zeros).shifted(run.local - run.global);
    if (here.size() > 0) parameter.view({-1}).slice(0, here.begin, here.end).zero_();
  }
}

}  // namespace stretto::nn
