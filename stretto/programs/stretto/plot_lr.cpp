#include <algorithm>
#include <cmath>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/number_text.h"
#include "stretto/base/strings.h"
#include "stretto/config/topology_request.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/stretto/chart_arguments.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/report/learning_rate.h"

namespace stretto::cli {
namespace {

constexpr int64_t most_points = 20'000;  // maximum number of points of a curve

struct PlotLrArguments {
  std::filesystem::path recipe;
  std::vector<std::string> overrides, settings;
  int64_t samples = 0, ranks = 1;
  bool csv = false;
  ChartArguments chart;
};

// training.max_steps, or the steps of all epochs over `samples` samples.
int64_t total_steps(const Recipe& recipe, const PlotLrArguments& arguments) {
  const TrainingConfig& training = recipe.training;
  if (training.max_steps) return *training.max_steps;
  if (arguments.samples == 0) {
    throw ConfigError(
        "{}: the length of the run follows from its data; give the number of training samples: --samples N, or set training.max_steps",
        arguments.recipe.string());
  }
  const int64_t tp = std::min(training.mesh.tp, arguments.ranks);
  const int64_t batch =
      resolve(topology_request(recipe), MeshShape{.dp_shard = static_cast<int>(arguments.ranks / tp)})
          .batch.global_batch_size;
  if (batch == 0) {
    throw ConfigError(
        "{}: with training.max_tokens the number of steps depends on the lengths of the texts; set training.max_steps",
        recipe.origins.label("training.max_tokens"));
  }
  const int64_t per_epoch = (arguments.samples + batch - 1) / batch;
  return static_cast<int64_t>(std::ceil(static_cast<double>(per_epoch) * training.epochs - 1e-9));
}

void plot_lr(const PlotLrArguments& arguments) {
  std::vector<std::string> overrides = arguments.settings;
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  const Recipe recipe = load_recipe(arguments.recipe, overrides);
  const int64_t steps = total_steps(recipe, arguments);
  const auto schedule = report::start_schedule(recipe, steps);
  if (arguments.csv) {
    fmt::print("step,lr{}\n", schedule->rates(0).momentum ? ",momentum" : "");
    for (int64_t step = 1; step <= steps; ++step) {
      const auto [lr, momentum] = schedule->rates(step - 1);
      fmt::print("{},{}{}\n", step, number_text(lr), momentum ? "," + number_text(*momentum) : "");
    }
    return;
  }
  report::Curve curve{"lr", {}};
  const int64_t distance = std::max<int64_t>(1, steps / most_points);
  for (int64_t step = 1; step <= steps; step = step < steps ? std::min(step + distance, steps) : steps + 1)
    curve.points.emplace_back(static_cast<double>(step), schedule->rates(step - 1).lr);
  show_chart({recipe.scheduler.type + ", " + counted(steps, "step"), "step", {curve}}, arguments.chart);
}

}  // namespace

void add_plot_lr(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("plot-lr", "Draw the learning-rate schedule of a recipe");
  auto arguments = std::make_shared<PlotLrArguments>();
  verb->add_option("recipe", arguments->recipe, "The recipe; its model and data are not read")->required();
  verb->add_option("settings", arguments->settings, "Settings to override")->type_name("KEY=VALUE");
  verb->add_option("--set", arguments->overrides, "A setting to override")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--samples", arguments->samples,
                   "Number of training samples, if training.max_steps is not set")
      ->type_name("N")
      ->check(arguments::whole_number_from(1, 1'000'000'000'000));
  verb->add_option("-N", arguments->ranks, "Number of ranks, for the batch size (default: 1)")
      ->type_name("N")
      ->check(arguments::whole_number_from(1, 1'000'000));
  verb->add_flag("--csv", arguments->csv, "Print step,lr of every optimizer step");
  add_chart_arguments(*verb, arguments->chart);
  verb->callback([arguments, &exit_code] {
    plot_lr(*arguments);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
