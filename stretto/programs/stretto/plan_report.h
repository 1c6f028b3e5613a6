#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto::cli {

// What the ranks have measured and predicted on each mesh (programs/stretto_rank/plan.cpp), joined.
class PlanReport {
 public:
  void add(const nlohmann::ordered_json& mesh) { meshes_.push_back(mesh); }

  // The row with the least memory among those that fit and are at most 2 % slower than the fastest; null:
  // none fits.
  const nlohmann::ordered_json* best() const;

  nlohmann::ordered_json json() const;

  // The measurements, and a table. `strategy`: that of the recipe. `larger_mesh`: the flags of a mesh with
  // more ranks per layer than those planned, which are proposed if nothing fits; "": none.
  std::string text(const std::string& strategy, const std::string& larger_mesh) const;

 private:
  std::vector<const nlohmann::ordered_json*> rows() const;

  std::vector<nlohmann::ordered_json> meshes_;
};

}  // namespace stretto::cli
