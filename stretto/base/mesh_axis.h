#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stretto {

// The axes in which the ranks of a job are arranged: a rank has a position on each.
enum class Axis : uint8_t {
  pp,            // stages of a pipeline
  dp_replicate,  // copies of the model, which train on different data
  dp_shard,      // shards of a copy; these ranks train on different data as well
  cp,            // parts of each sequence
  tp             // parts of each layer
};
constexpr auto names_of(Axis) {
  return std::to_array<std::string_view>({"pp", "dp_replicate", "dp_shard", "cp", "tp"});
}
inline constexpr std::array all_axes = {Axis::pp, Axis::dp_replicate, Axis::dp_shard, Axis::cp, Axis::tp};

// A set of axes. It divides the ranks into groups: the ranks of a group differ on these axes only.
struct Axes {
  uint8_t bits = 0;

  constexpr Axes() = default;
  constexpr Axes(Axis axis) : bits(static_cast<uint8_t>(1U << static_cast<unsigned>(axis))) {}  // NOLINT
  constexpr bool has(Axis axis) const { return (bits & Axes(axis).bits) != 0; }
  constexpr bool operator==(const Axes&) const = default;

  static const Axes data;   // ranks that train on different samples
  static const Axes sum;    // ranks whose gradients, losses and counts are summed
  static const Axes shard;  // ranks that together hold one copy of what a strategy shards
  static const Axes stage;  // ranks that compute the same layers
  static const Axes world;  // all ranks
};

constexpr Axes operator|(Axes a, Axes b) {
  a.bits |= b.bits;
  return a;
}
constexpr Axes operator|(Axis a, Axis b) { return Axes(a) | Axes(b); }

inline constexpr Axes Axes::data = Axis::dp_replicate | Axis::dp_shard;
inline constexpr Axes Axes::sum = Axes::data | Axis::cp;
inline constexpr Axes Axes::shard = Axis::dp_shard | Axis::cp;
inline constexpr Axes Axes::stage = Axes::sum | Axis::tp;
inline constexpr Axes Axes::world = Axes::stage | Axis::pp;

}  // namespace stretto
