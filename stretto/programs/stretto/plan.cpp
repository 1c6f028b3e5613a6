#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/new_folder.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/machine/memory.h"
#include "stretto/config/task_kind.h"
#include "stretto/config/topology_request.h"
#include "stretto/launch/launch.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/arguments/memory_need.h"
#include "stretto/programs/arguments/plan_arguments.h"
#include "stretto/programs/arguments/recipe_handover.h"
#include "stretto/programs/arguments/recipe_outline.h"
#include "stretto/programs/stretto/plan_report.h"
#include "stretto/programs/stretto/plan_script.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

// Adds a recipe and, for the case that it does not fit into memory, the same with divided rows.
void add_with_rows(std::vector<Recipe>& recipes, const Recipe& recipe) {
  recipes.push_back(recipe);
  if (recipe.training.mesh.tp == 1 || recipe.origins.given("training.mesh.sequence_parallel")) return;
  recipes.push_back(recipe);
  recipes.back().training.mesh.sequence_parallel = true;
}

// The model, if ranks can divide its layers.
std::optional<ModelOutline> divisible_model(const Recipe& recipe) {
  const bool freezes = !recipe.parameters.freeze.empty();  // frozen parameters are whole
  if (!task_kind(recipe).divides_models || freezes) return std::nullopt;
  return arguments::outline_of(recipe);
}

// The recipe on the meshes to plan with: the recipe's own if it names one, else whole layers and, for the
// case that these do not fit into memory, layers that are divided among ranks of a host.
std::vector<Recipe> recipes_by_mesh(const Recipe& recipe, const std::vector<std::string>& hosts) {
  const auto model = divisible_model(recipe);
  if (!model) return {recipe};
  std::vector<Recipe> recipes;
  add_with_rows(recipes, recipe);
  if (recipe.origins.given("training.mesh.tp")) return recipes;
  const auto ranks_per_host = static_cast<int>(std::ranges::count(hosts, hosts[0]));
  for (int tp = 2; tp <= ranks_per_host; ++tp) {
    if (ranks_per_host % tp != 0 || !model->divides_among(tp)) continue;
    Recipe divided = recipe;
    divided.training.mesh.tp = tp;
    divided.training.strategy = "ddp";
    divided.training.dp_shard.reset();
    try {
      resolve(topology_request(divided), hosts);
      add_with_rows(recipes, divided);
    } catch (const ConfigError&) {  // the recipe's batch or mesh.dp does not fit this mesh
    }
  }
  return recipes;
}

// The flags of the next mesh whose layers are divided among more than `tp` ranks, "-N 4 --tp 4", on a host
// with at least as many ranks; "": there is none, or the recipe does not leave it open.
std::string larger_mesh(const Recipe& recipe, int64_t tp, int64_t ranks_per_host) {
  const auto model = divisible_model(recipe);
  if (!model || recipe.origins.given("training.mesh.dp")) return "";
  for (int64_t more = tp + 1; more <= model->heads; ++more) {
    if (model->divides_among(more))
      return fmt::format("-N {} --tp {}", (ranks_per_host + more - 1) / more * more, more);
  }
  return "";
}

// Whether this machine has the memory to measure the ranks with the parts of each layer.
bool can_measure(const Recipe& recipe, double available) {
  const auto tp = static_cast<int>(recipe.training.mesh.tp);
  const JobShape job = {.ranks = tp, .ranks_per_host = tp, .tp = tp};
  return tp * arguments::memory_per_rank(recipe, Verb::train, job) <= available;
}

// Throws ConfigError for a folder, with the name of a job script in it.
void require_file(const std::filesystem::path& planned) {
  std::error_code failed;
  if (!std::filesystem::is_directory(planned, failed)) return;
  std::vector<std::string> scripts;
  for (const auto& entry : std::filesystem::directory_iterator(planned, failed))
    if (arguments::is_job_script(entry.path())) scripts.push_back(entry.path().string());
  throw ConfigError("{}: it is a folder; expected a recipe (a YAML file) or a job script{}", planned.string(),
                    scripts.empty() ? " (FILE.sh)" : ", such as " + *std::ranges::min_element(scripts));
}

// Measures on one data rank; the arguments describe the planned job.
int plan(arguments::PlanArguments& arguments) {
  arguments::refuse_script_options(arguments);
  arguments::apply_foreign_launch(arguments.recipe);
  const Recipe recipe = arguments::load_checked(arguments.recipe, Verb::train);
  launch::LaunchOptions options{
      .command = rank_command(), .log_folder = recipe.output / "plan", .own_program = true};
  arguments::LaunchArguments measuring = arguments.recipe.launch;
  const int hosts = std::max(1, std::exchange(measuring.hosts, {}).nodes);
  arguments::apply(measuring, options);
  const int planned = options.ranks == 0 ? launch::default_ranks() : options.ranks;
  const std::vector<std::string> hosts_of_ranks = equal_hosts(hosts, planned);
  arguments::require_job(arguments.recipe, recipe, hosts_of_ranks);
  options.pin = false;  // a rank sees all cores
  const NewFolder made(options.log_folder);
  const double available = machine::available_memory();
  const std::vector<Recipe> recipes = recipes_by_mesh(recipe, hosts_of_ranks);
  PlanReport report;
  for (const Recipe& on_mesh : recipes) {
    if (&on_mesh != &recipes.back() && !can_measure(on_mesh, available)) {
      log::info("tp {} is not measured: this machine has {} of memory, and needs more",
                on_mesh.training.mesh.tp, human_bytes(available));
      continue;
    }
    const arguments::RecipeHandover handover(arguments.recipe, on_mesh);
    options.environment = handover.environment();
    options.ranks = static_cast<int>(on_mesh.training.mesh.tp);
    std::filesystem::remove(arguments::plan_file(recipe));
    const int code = launch::run(options);
    if (code != 0 || !std::filesystem::exists(arguments::plan_file(recipe))) {  // or interrupted
      remove_folder(options.log_folder);
      return code;
    }
    report.add(nlohmann::ordered_json::parse(read_file(arguments::plan_file(recipe))));
    if (report.best() != nullptr) break;
  }
  std::cout << (arguments.json ? report.json().dump(2) + "\n"
                               : report.text(recipe.training.strategy,
                                             larger_mesh(recipe, recipes.back().training.mesh.tp, planned)));
  remove_folder(options.log_folder);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "plan", "Predict memory and step time of a recipe under each strategy and, where none fits, mesh");
  auto arguments = std::make_shared<arguments::PlanArguments>();
  arguments::add_plan_arguments(*verb, *arguments);
  verb->footer(
      "A job script of NeuronxDistributed (FILE.sh) is read, not run: its variables may follow as NAME=VALUE.");
  verb->callback([arguments, &exit_code] {
    require_file(arguments->recipe.recipe);
    if (arguments::is_job_script(arguments->recipe.recipe)) return plan_script(*arguments);
    exit_code = plan(*arguments);
  });
}

}  // namespace stretto::cli
