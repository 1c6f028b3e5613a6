#include "stretto/nn/initial_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <ATen/Parallel.h>

#include "stretto/base/hash.h"
#include "stretto/base/philox.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/tensor_parallel.h"

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

// The elements of a region, in its order, as runs of the global tensor.
std::vector<LocalRun> runs_of(const std::vector<int64_t>& shape, const Region& region) {
  TensorLayout box = {.global = shape};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const Range interval = {region.offset[axis], region.offset[axis] + region.extent[axis]};
    if (interval.size() != shape[axis])
      box.cuts.push_back(
          {.axis = static_cast<int>(axis), .intervals = {interval}, .largest = interval.size()});
  }
  std::vector<LocalRun> runs;
  for (const LocalRun& run : box.runs()) {
    const Range held = Range{run.local, run.local + run.elements} & Range{region.flat_begin, region.flat_end};
    if (held.size() > 0)
      runs.push_back({held.begin - region.flat_begin, run.global + held.begin - run.local, held.size()});
  }
  return runs;
}

// Calls `draw` for each block of four global elements, and writes the values of those that are in the runs.
template <class Draw>
void fill(float* values, const std::vector<LocalRun>& runs, const Draw& draw) {
  for (const LocalRun& run : runs) {
    const auto write = [&](int64_t begin, int64_t end) {
      int64_t element = run.global + begin;
      float* target = values + run.local + begin;
      for (const float* const last = values + run.local + end; target < last;) {
        const Values four = draw(element / 4);
        for (int64_t lane = element % 4; lane < 4 && target < last; ++lane, ++element)
          *target++ = four[static_cast<size_t>(lane)];
      }
    };
    at::parallel_for(0, run.elements, /*grain_size=*/1 << 15, write);
  }
}

void fill_normal(float* values, const std::vector<LocalRun>& runs, uint64_t key, double std) {
  const auto scale = static_cast<float>(std);
  fill(values, runs, [key, scale](int64_t block) {
    const auto random = words(block, key);
    Values four{};
    normal_pair(random[0], random[1], four.data());
    normal_pair(random[2], random[3], four.data() + 2);
    for (float& value : four) value *= scale;
    return four;
  });
}

void fill_uniform(float* values, const std::vector<LocalRun>& runs, uint64_t key, double bound) {
  const auto scale = static_cast<float>(bound);
  fill(values, runs, [key, scale](int64_t block) {
    Values four{};
    const auto random = words(block, key);
    for (size_t i = 0; i < four.size(); ++i)
      four[i] = (static_cast<float>(random[i] >> 8) * 0x1p-23F - 1) * scale;
    return four;
  });
}

// Zeroes row `row` of a table.
void fill_zeros(float* values, const std::vector<LocalRun>& runs, int64_t row, int64_t width) {
  const Range zeros = {row * width, (row + 1) * width};
  for (const LocalRun& run : runs) {
    const Range here = (Range{run.global, run.global + run.elements} & zeros).shifted(run.local - run.global);
    std::fill_n(values + here.begin, here.size(), 0.0F);
  }
}

bool is_weight_of_norm(const LayerParameter& parameter) {
  return parameter.own_name == "weight" && dynamic_cast<const Norm*>(parameter.layer) != nullptr;
}

}  // namespace

InitialValue InitRule::of(const LayerParameter& parameter) const {
  using Kind = InitialValue::Kind;
  if (parameter.name.ends_with(".bias")) return {Kind::constant, 0};
  if (is_weight_of_norm(parameter)) return {Kind::constant, 1};
  return {Kind::normal, std, parameter.name == table ? padding_row : -1};
}

std::unique_ptr<InitialValues> initial_values(const torch::nn::Module& module, uint64_t seed,
                                              const InitRule& rule) {
  auto values = std::make_unique<InitialValues>(seed);
  for (const LayerParameter& parameter : layer_parameters(module))
    values->add(parameter.name, parameter.layout().global, rule.of(parameter));
  return values;
}

void InitialValues::add(const std::string& name, std::vector<int64_t> shape, InitialValue value) {
  parameters_[name] = {std::move(shape), std::move(value)};
}

void InitialValues::read(const std::string& name, const Region& region, const Tensor& values) const {
  at::NoGradGuard no_grad;
  const auto& [shape, value] = parameters_.at(name);
  const bool direct = values.scalar_type() == at::kFloat && values.is_cpu() && values.is_contiguous();
  const Tensor drawn = direct ? values : at::empty(values.sizes(), at::kFloat);
  auto* const data = drawn.mutable_data_ptr<float>();
  const std::vector<LocalRun> runs = runs_of(shape, region);
  const uint64_t key = hash64(value.drawn_as.empty() ? name : value.drawn_as, seed_);
  switch (value.kind) {
    case InitialValue::Kind::constant:
      drawn.fill_(value.scale);
      break;
    case InitialValue::Kind::normal:
      fill_normal(data, runs, key, value.scale);
      break;
    case InitialValue::Kind::uniform:
      fill_uniform(data, runs, key, value.scale);
      break;
  }
  if (value.zero_row >= 0 && !runs.empty())
    fill_zeros(data, runs, value.zero_row, count_elements(shape) / shape[0]);
  if (!direct) values.copy_(drawn);
}

}  // namespace stretto::nn
