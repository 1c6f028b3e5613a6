#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/data/subset.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/records/evaluation_speed.h"

namespace stretto::trainer {

// Validation samples by name.
using ValidationSets = std::vector<std::pair<std::string, const data::Dataset*>>;

// Samples that are evaluated during a run: all of a set, or evaluate.max_samples of it.
struct ValidationSamples {
  std::string set;  // "": those that are passed to fit()
  const data::Dataset* all;
  std::optional<data::Subset> limited = {};
  const data::Dataset& get() const { return limited ? *limited : *all; }
};

// The samples that a run evaluates, those without a name first; none without evaluations. `validation` may be
// null. The datasets must outlive the result.
std::vector<ValidationSamples> validation_samples(const Recipe& recipe, const data::Dataset* validation,
                                                  const ValidationSets& others);

// The results of an evaluation.
struct Validated {
  Metrics metrics;  // the same on all ranks; those of a set with a name are named "<set>/<metric>"
  EvaluationSpeed speed = {};
  std::string table = {};               // with evaluate.by_class, on rank 0; else ""
  std::vector<std::string> texts = {};  // those of evaluate.samples with their continuations, on rank 0

  nlohmann::json to_json() const;
  static Validated from_json(const nlohmann::json& json);
};

// How the module computes.
struct ValidationPass {
  at::Device device;
  std::optional<at::ScalarType> autocast = {};  // see ComputePrecision
  bool collective_forward = false;              // see EngineFacts::passes_are_collective
};

// The metrics of `samples`, a part of the set `set`, with their names. If `table` is not null, it receives
// the table of evaluate.by_class. Collective.
Metrics measure_set(const Recipe& recipe, Module& module, const Mesh& mesh, const ValidationPass& pass,
                    const std::string& set, const data::Dataset& samples, std::string* table = nullptr);

// Evaluates the module with its current weights; the result has no texts. Collective.
Validated validate(const Recipe& recipe, Module& module, const Mesh& mesh, const ValidationPass& pass,
                   const std::vector<ValidationSamples>& sets);

// The texts of evaluate.samples, continued by the module with its current weights. Collective.
std::vector<std::string> continue_texts(const Recipe& recipe, Module& module, const Mesh& mesh,
                                        const ValidationPass& pass);

}  // namespace stretto::trainer
