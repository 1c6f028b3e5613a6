#pragma once

#include <map>
#include <string>

#include "stretto/comm/group.h"
#include "stretto/tensor/state.h"

namespace stretto {

using Metrics = std::map<std::string, double>;

// Weighted means of named values over a window of steps: each rank adds its own, rank 0 tells the means.
class LoggedValues {
 public:
  // Throws Error where the weight is negative or no number; a weight of 0 leaves the value out.
  void add(const std::string& name, double value, double weight);

  // Takes over what was added to `other`.
  void add(const LoggedValues& other);

  bool empty() const { return sums_.empty(); }

  // Moves what all ranks have added to rank 0. Collective.
  void collect(Group& group);

  // The means, which are forgotten with that.
  Metrics take();

  // Of what is at hand: rank 0's after collect().
  nlohmann::json to_json() const;
  void from_json(const nlohmann::json& values);

 private:
  struct Sum {
    double value = 0;  // weight x value
    double weight = 0;
  };
  std::map<std::string, Sum> sums_;
};

}  // namespace stretto
