#include "tests/train/thread_workspace.h"

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/config/evaluation.h"
#include "stretto/config/recipe.h"
#include "stretto/config/topology_request.h"
#include "stretto/tasks/task.h"
#include "stretto/trainer/records/summary.h"

namespace stretto {
namespace {

// Collects the lines that are logged during its lifetime.
class LoggedLines {
 public:
  LoggedLines() {
    log::set_output([this](std::string_view line) { text_.append(line).append("\n"); });
  }
  LoggedLines(const LoggedLines&) = delete;
  LoggedLines& operator=(const LoggedLines&) = delete;
  ~LoggedLines() { log::set_output({}); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string ThreadWorkspace::train(const std::string& name, int ranks, const std::string& settings) const {
  const LoggedLines lines;
  run_threads(Verb::train, name, ranks, settings);
  return lines.text();
}

void ThreadWorkspace::test(const std::string& name, int ranks, const std::string& settings) const {
  const LoggedLines lines;
  run_threads(Verb::test, name, ranks, settings);
}

std::string ThreadWorkspace::refusal_of(const std::string& name, int ranks,
                                        const std::string& settings) const {
  const LoggedLines lines;
  try {
    run_threads(Verb::train, name, ranks, settings);
  } catch (const ConfigError& error) {
    return lines.text() + error.what();
  } catch (const DataError& error) {
    return lines.text() + error.what();
  }
  ADD_FAILURE() << name << " was not refused:\n" << lines.text();
  return "";
}

void ThreadWorkspace::run_threads(Verb verb, const std::string& name, int ranks,
                                  const std::string& settings) const {
  std::vector<std::string> overrides = {"track.progress=off", "output=" + path(name)};
  for (const std::string_view setting : split(settings, ' ')) {
    if (!setting.empty()) overrides.emplace_back(setting);
  }
  Recipe recipe = load_recipe(path("recipe.yaml"), overrides);
  resolve_evaluation(recipe);
  check_recipe(recipe, verb);
  resolve(topology_request(recipe), equal_hosts(1, ranks));  // as a launcher does before ranks start
  const std::string& backend = recipe.training.backend;
  comm::run_rank_threads(
      ranks, {.deadline = std::chrono::seconds(60)},
      [&](Group& group) {
        const Mesh mesh = make_mesh(recipe, group);
        const auto task = make_task({recipe, mesh, at::kCPU, bundled_models()});
        if (verb == Verb::test) return task->test();
        const FitResult result = task->train({});
        if (group.rank() == 0 && !result.stopped && !result.was_finished)
          trainer::write_summary(recipe, mesh, result);
      },
      backend == "auto" ? "shm" : backend);
}

}  // namespace stretto
