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
  double operations = 0;                                      // floating-point operations of a matmul
  std::optional<kernels::MatmulShape> matmul = std::nullopt;  // of a matmul of stretto's layers
  uint64_t thread = 0;
  double start = 0;  // seconds after an arbitrary moment
};

// The matmul of stretto's layers that an event of this name recorded, from the shapes and the dtype of its
// operands; nullopt for other events.
std::optional<kernels::MatmulShape> layer_matmul(std::string_view name,
                                                 std::span<const std::vector<int64_t>> shapes,
                                                 std::string_view dtype);

// The number of operations, 2 m k n, of the matmul that the ATen operator `name` computes from inputs of
// these shapes; 0 for other operators.
double matmul_operations(std::string_view name, std::span<const std::vector<int64_t>> shapes);

// How the time of `steps` steps is distributed.
struct Profile {
  struct Row {
    std::string phase;
    double seconds = 0;  // per step
  };
  int64_t steps = 0;
  double step_seconds = 0;
  std::vector<Row> rows;      // disjoint; the last one is the time outside all phases
  double matmul_seconds = 0;  // per step in matmuls, within the phases above
  double matmul_rate = 0;     // their operations per second
  std::map<kernels::MatmulShape, int64_t>
      layer_matmuls;                // matmuls of stretto's layers, and their numbers in all steps
  double other_matmul_seconds = 0;  // per step, in other matmuls
};

// Summarises the events of `steps` steps. Operators that a matmul of stretto's layers calls are counted once,
// as that matmul. REQUIRES: steps > 0.
Profile summarise(std::span<const TimedEvent> events, int64_t steps, double seconds);

// The time that the matmuls of a step take, each by the fastest library for its shape: a lower bound for the
// step.
struct MatmulFloor {
  double seconds = 0;  // per step; matmuls of other layers count as recorded
  struct Rate {
    double operations = 0, seconds = 0;
  };
  std::map<std::pair<kernels::MatmulRole, kernels::MatmulLibrary>, Rate> rates;  // over all shapes
};

// Times the profile's matmuls by each usable library, in some milliseconds per shape.
MatmulFloor measure_floor(const Profile& profile);
std::string to_text(const MatmulFloor& floor, double step_seconds);

// Formats the profile as a table. `peak`: peak operations per second of the rank's cores; 0 if unknown.
std::string to_text(const Profile& profile, double peak);

}  // namespace stretto::trainer
