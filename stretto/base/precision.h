#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace stretto {

// The precision of a run. `fp32` and `fp64` use that dtype throughout; `bf16` and `fp16` compute in bfloat16
// or float16 on a copy of fp32 master weights, with fp32 gradients and reductions. `fp16` multiplies the loss
// by a loss scale (LossScaleOptions).
enum class Precision { fp32, bf16, fp16, fp64 };
constexpr auto names_of(Precision) {
  return std::to_array<std::string_view>({"fp32", "bf16", "fp16", "fp64"});
}
// Whether the model computes in 16 bits.
constexpr bool is_half(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16;
}

// The loss scale of fp16: the loss is multiplied by it, so that small gradients stay above fp16's range, and
// the gradients are divided by it. A step whose gradients overflow is skipped. Names are those of
// torch.amp.GradScaler; hysteresis and min_scale are DeepSpeed's.
struct LossScaleOptions {
  double init_scale = 65'536;
  double growth_factor = 2;     // of the scale, after growth_interval steps without an overflow
  double backoff_factor = 0.5;  // of the scale, at an overflow
  std::int64_t growth_interval = 2000;
  std::int64_t hysteresis = 1;  // overflows until the scale is lowered, counted from its last growth
  double min_scale = 1;         // the scale is not lowered below it
  bool dynamic = true;          // false: the scale stays init_scale

  bool operator==(const LossScaleOptions&) const = default;
};

// Lightning's names of precisions, with the names used here.
const std::map<std::string, std::string>& precision_spellings();

// Names of precisions that are known and refused, with the reason.
const std::map<std::string, std::string>& refused_precisions();

// Accepts the names of Precision and those of precision_spellings(). Throws ConfigError for any other name.
Precision parse_precision(const std::string& name);

}  // namespace stretto
