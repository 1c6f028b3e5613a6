#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stretto/base/registry.h"
#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"
#include "stretto/models/registry.h"
#include "stretto/trainer/trainer.h"

namespace stretto {

// What a recipe's `task` names, from files to a trained model folder and from a model folder to results. Every rank runs
// it with the same recipe.
class Task {
 public:
  virtual ~Task() = default;

  // Trains; leaves <output>/model. Where a signal stopped it (FitResult::stopped), the run folder's newest checkpoint
  // holds the state.
  virtual FitResult train(const std::vector<std::shared_ptr<Callback>>& callbacks) = 0;

  // Evaluates <output>/model on data.test; leaves predictions.jsonl and, where the file has labels, test_results.json.
  virtual void test() = 0;
};

// What a task is made of. All of it must outlive the task.
struct TaskContext {
  const Recipe& recipe;
  Group& group;
  at::Device device;
  const ModelRegistry& models;
};

struct TaskType {
  std::string name;  // as the recipe's `task`
  std::function<std::unique_ptr<Task>(const TaskContext&)> make;
};

using TaskRegistry = Registry<TaskType>;

// The tasks that stretto has: those of config/task_names.h.
const TaskRegistry& bundled_tasks();

// The task that the recipe names. Throws ConfigError that lists the known ones.
std::unique_ptr<Task> make_task(const TaskRegistry& tasks, const TaskContext& context);

}  // namespace stretto
