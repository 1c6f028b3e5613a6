#pragma once

#include <memory>
#include <vector>

#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/models/registry.h"
#include "stretto/trainer/api/trainer.h"

namespace stretto {

// A task, selected by a recipe's `task`: trains a model folder from data files and evaluates it. Every rank
// runs it with the same recipe.
class Task {
 public:
  virtual ~Task() = default;

  // Trains and writes <output>/model. If a signal stopped it (FitResult::stopped), the newest checkpoint in
  // the output folder contains the state.
  virtual FitResult train(const std::vector<std::shared_ptr<Callback>>& callbacks) = 0;

  // Evaluates <output>/model on data.test; writes predictions.jsonl and, if the file has labels,
  // test_results.json.
  virtual void test() = 0;
};

// The arguments of a task, which must outlive it.
struct TaskContext {
  const Recipe& recipe;
  const Mesh& mesh;
  at::Device device;
  const ModelRegistry& models;
};

// Creates the task of the recipe. Throws ConfigError, which lists the known tasks, for an unknown one.
std::unique_ptr<Task> make_task(const TaskContext& context);

}  // namespace stretto
