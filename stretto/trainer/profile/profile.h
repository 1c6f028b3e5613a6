#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/kernels/matmul/speed.h"

namespace stretto::trainer {

// An event recorded by the profiler.
struct TimedEvent {
  std::string name;
  double seconds = 0;
  double operations = 0;                                       // floating-point operations of matrix products
  std::optional<kernels::MatmulShape> product = std::nullopt;  // of a product of stretto's layers
  uint64_t thread = 0;
  double start = 0;  // seconds after some moment
};

// The product of stretto's layers that an event of this name recorded, from the shapes and the type of its
// operands; nullopt for other events.
std::optional<kernels::MatmulShape> layer_product(std::string_view name,
                                                  std::span<const std::vector<int64_t>> shapes,
                                                  std::string_view dtype);

// 2 m k n of the matrix product that the ATen operator `name` computes from inputs of these shapes; 0 for
// other operators.
double product_operations(std::string_view name, std::span<const std::vector<int64_t>> shapes);

// How the time of `steps` steps is distributed.
struct Profile {
  struct Row {
    std::string phase;
    double seconds = 0;  // per step
  };
  int64_t steps = 0;
  double step_seconds = 0;
  std::vector<Row> rows;       // disjoint; the last one is the time outside of all phases
  double product_seconds = 0;  // per step in matrix products, within the phases above
  double product_rate = 0;     // their operations per second
  std::map<kernels::MatmulShape, int64_t>
      layer_products;                // of stretto's layers, and how many of each in all steps
  double other_product_seconds = 0;  // per step, in products of other layers
};

// Operators that a product of stretto's layers calls are counted once, as that product. REQUIRES: steps > 0.
Profile summarise(std::span<const TimedEvent> events, int64_t steps, double seconds);

// The time that the products of a step take alone, each by the library that is fastest for its shape: what
// remains if everything else takes no time.
struct ProductFloor {
  double seconds = 0;  // per step; products of other layers count as they were recorded
  struct Rate {
    double operations = 0, seconds = 0;
  };
  std::map<std::pair<kernels::MatmulRole, kernels::MatmulLibrary>, Rate> rates;  // over all shapes
};

// Times the profile's products by each usable library: some milliseconds per shape.
ProductFloor measure_floor(const Profile& profile);
std::string to_text(const ProductFloor& floor, double step_seconds);

// The profile as a text table. `peak`: peak operations per second of the rank's cores; 0 where it is unknown.
std::string to_text(const Profile& profile, double peak);

}  // namespace stretto::trainer
