#include "stretto/models/llama/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

// Numbers are rounded to fp32 where transformers rounds them.
namespace stretto {
namespace {

// 0, 2/width, 4/width, ...
Tensor exponents(int64_t width) { return at::arange(0, width, 2, at::kFloat) / static_cast<double>(width); }

Tensor unscaled(double theta, int64_t width) { return at::pow(theta, exponents(width)).reciprocal(); }

// Peng et al. 2023, section 3.2: frequencies with fewer than beta_slow rotations over the original length are
// divided by the factor, those with more than beta_fast rotations are not, with a ramp between the two.
Tensor yarn(const RopeParameters& rope, int64_t width) {
  const auto columns = static_cast<double>(width);
  const auto column_of = [&](double turns) {
    const auto length = static_cast<double>(rope.original_max_position_embeddings);
    return columns * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
  };
  double low = column_of(rope.beta_fast), high = column_of(rope.beta_slow);
  if (rope.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, columns - 1);
  if (low == high) high += 0.001;
  const Tensor ramp = ((at::arange(width / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  const Tensor powers = at::pow(rope.theta, exponents(width)), kept = 1 - ramp;
  return (powers * rope.factor).reciprocal() * (1 - kept) + powers.reciprocal() * kept;
}

// Llama 3.1's rule: frequencies with long waves are divided by the factor, those with short ones are not,
// with a smooth transition between the two.
Tensor llama3(const RopeParameters& rope, int64_t width) {
  const auto length = static_cast<double>(rope.original_max_position_embeddings);
  const Tensor plain = unscaled(rope.theta, width), waves = plain.reciprocal() * (2 * std::numbers::pi);
  const double longest = length / rope.low_freq_factor, shortest = length / rope.high_freq_factor;
  const Tensor scaled = at::where(waves > longest, plain / rope.factor, plain);
  const Tensor smooth =
      (waves.reciprocal() * length - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  const Tensor mixed = (1 - smooth) * scaled / rope.factor + smooth * scaled;
  return at::where(waves.ge(shortest).logical_and(waves.le(longest)), mixed, scaled);
}

// The base of a sequence that is longer than the model's.
Tensor dynamic(const RopeParameters& rope, int64_t width, int64_t length) {
  const Tensor most = at::scalar_tensor(std::max(length, rope.max_position_embeddings), at::kLong);
  const auto columns = static_cast<double>(width);
  const Tensor growth = most * rope.factor / rope.max_position_embeddings - (rope.factor - 1);
  const Tensor theta = at::pow(growth, columns / (columns - 2)) * rope.theta;
  return at::pow(theta, exponents(width)).reciprocal();
}

}  // namespace

Tensor Rope::frequencies(int64_t length) const {
  const RopeParameters& rope = parameters_;
  switch (rope.type) {
    case RopeType::unchanged:
      break;
    case RopeType::linear:
      return unscaled(rope.theta, width_) / rope.factor;
    case RopeType::dynamic:
      if (length > rope.max_position_embeddings) return dynamic(rope, width_, length);
      break;
    case RopeType::yarn:
      return yarn(rope, width_);
    case RopeType::longrope: {
      const auto& factors =
          length > rope.original_max_position_embeddings ? rope.long_factor : rope.short_factor;
      return (at::tensor(factors, at::kFloat) * at::pow(rope.theta, exponents(width_))).reciprocal();
    }
    case RopeType::llama3:
      return llama3(rope, width_);
  }
  return unscaled(rope.theta, width_);
}

nn::Rotation Rope::at(const nn::PackedLayout& layout, at::ScalarType dtype) const {
  const Tensor positions = layout.position_ids.to(at::kFloat).unsqueeze(1);
  Tensor angles;
  if (parameters_.type == RopeType::dynamic || parameters_.type == RopeType::longrope) {
    const Tensor bounds = layout.cu_seqlens.to(at::kCPU);
    const auto* bound = bounds.const_data_ptr<int64_t>();
    const Tensor first_positions = layout.position_ids.index_select(0, layout.first_rows()).to(at::kCPU);
    const auto* first = first_positions.const_data_ptr<int64_t>();
    std::vector<Tensor> parts;
    for (int64_t b = 0; b < layout.batch; ++b) {
      // Rows after the last sequence are padding.
      const int64_t end = b + 1 < layout.batch ? bound[b + 1] : layout.tokens;
      const Tensor each = frequencies(first[b] + bound[b + 1] - bound[b]).to(positions.device());
      parts.push_back(positions.slice(0, bound[b], end) * each);
    }
    angles = at::cat(parts);
  } else {
    angles = positions * frequencies(layout.max_length).to(positions.device());
  }
  const auto type = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const double factor = parameters_.attention_factor;
  return {(angles.cos() * factor).to(type), (angles.sin() * factor).to(type)};
}

}  // namespace stretto
