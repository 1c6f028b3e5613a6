#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

// Something that a profiler saw begin and end.
struct TimedEvent {
  std::string name;
  double seconds = 0;
  double operations = 0;  // floating-point ones, of products of matrices
};

// 2 m k n of the product that the ATen operator `name` computes from inputs of these shapes; 0 for other operators.
double product_operations(std::string_view name, std::span<const std::vector<int64_t>> shapes);

// Where the time of `steps` steps went.
struct Profile {
  struct Row {
    std::string phase;
    double seconds = 0;  // a step
  };
  int64_t steps = 0;
  double step_seconds = 0;
  std::vector<Row> rows;       // disjoint, with what no phase claims as the last
  double product_seconds = 0;  // a step in products of matrices, within the phases above
  double product_rate = 0;     // operations a second of these
};

// REQUIRES: steps > 0.
Profile summarise(std::span<const TimedEvent> events, int64_t steps, double seconds);

// The profile as a table of text. `peak`: operations a second that the rank's cores could do; 0 where that is unknown.
std::string to_text(const Profile& profile, double peak);

}  // namespace stretto
