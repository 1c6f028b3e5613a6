#include "stretto/weights/float_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint_format/manifest.h"

namespace stretto::weights {
namespace {

// IEEE 754 binary16.
float half_value(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0) {  // zero and subnormal numbers: multiples of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// The fraction is rounded in units of its last bit; a carry reaches the exponent.
uint16_t half_of(double value) {
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(units + (exponent + 14) * 1024));
}

float bfloat_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Rounds via fp32, to odd, so that the result is that of rounding the double once.
uint16_t bfloat_of(double value) {
  auto single = static_cast<float>(value);
  auto bits = std::bit_cast<uint32_t>(single);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  if (std::isinf(single)) return static_cast<uint16_t>(bits >> 16);
  if (static_cast<double>(single) != value && (bits & 1) == 0)
    bits = std::bit_cast<uint32_t>(std::nextafter(single, value > single ? INFINITY : -INFINITY));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class Bits, auto convert>
double read(const char* element) {
  Bits bits;
  std::memcpy(&bits, element, sizeof bits);
  return static_cast<double>(convert(bits));
}

template <class Bits, auto convert>
void write(double value, std::string& bytes) {
  const Bits element = convert(value);
  bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
}

constexpr auto same = [](auto value) { return value; };
constexpr auto single_of = [](double value) { return static_cast<float>(value); };

constexpr std::array<FloatType, 4> types = {
    {{"F16", "float16", 0, read<uint16_t, half_value>, write<uint16_t, half_of>},
     {"BF16", "bfloat16", 0, read<uint16_t, bfloat_value>, write<uint16_t, bfloat_of>},
     {"F32", "float32", 1, read<float, same>, write<float, single_of>},
     {"F64", "float64", 2, read<double, same>, write<double, same>}}};

}  // namespace

const FloatType* find_float_type(std::string_view name) {
  const auto found = std::ranges::find(types, name, &FloatType::name);
  return found == types.end() ? nullptr : &*found;
}

const FloatType& float_type(const std::string& torch_name) {
  std::vector<std::string> names;
  for (const FloatType& type : types) {
    if (type.torch_name == torch_name) return type;
    names.emplace_back(type.torch_name);
  }
  throw ConfigError("\"{}\" is not one of {}{}", torch_name, fmt::join(names, ", "),
                    did_you_mean(torch_name, names));
}

Cast::Cast(std::string tensor, const FloatType& from, const FloatType& to,
           std::function<void(std::string_view)> write)
    : tensor_(std::move(tensor)), from_(from), to_(to), write_(std::move(write)) {}

void Cast::add(std::string_view bytes) {
  if (&from_ == &to_) return write_(bytes);
  const auto width = static_cast<size_t>(checkpoint_format::element_bytes(std::string(from_.name)));
  rest_.append(bytes);
  std::string converted;
  size_t at = 0;
  for (; at + width <= rest_.size(); at += width) {
    const double value = from_.read(rest_.data() + at);
    const size_t before = converted.size();
    to_.write(value, converted);
    if (std::isfinite(value) && !std::isfinite(to_.read(converted.data() + before))) {
      throw DataError("{} holds {:g}, which is too large for {}; choose bfloat16 or float32", tensor_, value,
                      to_.torch_name);
    }
  }
  rest_.erase(0, at);
  write_(converted);
}

}  // namespace stretto::weights
