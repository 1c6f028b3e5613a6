#pragma once

#include <cmath>
#include <utility>

namespace stretto {

// The mean of values with weights, such as numbers of steps or samples.
struct WeightedMean {
  double sum = 0;  // of weight x value
  double weight = 0;

  void add(double value, double of_weight = 1) {
    sum += of_weight * value;
    weight += of_weight;
  }
  void add(const WeightedMean& other) {
    sum += other.sum;
    weight += other.weight;
  }
  // NaN if there are no values.
  double mean() const { return weight > 0 ? sum / weight : NAN; }
  // Returns the mean and resets the sum.
  double take() { return std::exchange(*this, {}).mean(); }
};

}  // namespace stretto
