#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/new_folder.h"
#include "stretto/cluster/managers.h"
#include "stretto/compat/llama_script.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto/child_process.h"
#include "stretto/programs/stretto/instruction_texts.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/saved_blocks.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/track/results_file.h"

namespace stretto::cli {
namespace {

using compat::LlamaPlan;

struct LlamaArguments {
  bool print_recipe = false;
  std::string strategy;
  std::vector<std::string> settings;  // KEY=VALUE, which override the recipe
  arguments::LaunchArguments launch;
};

// What a command writes to --output_dir before its run begins, and removes again if it is refused.
class Preparation {
 public:
  explicit Preparation(const LlamaPlan& plan)
      : recipe_(plan.script.recipe_file()), made_(plan.script.output_dir) {
    if (plan.instructions) {
      const compat::InstructionFile& file = *plan.instructions;
      texts_folder_.emplace(file.train.parent_path());
      for (const auto& text : {file.train, file.test})
        if (!std::filesystem::exists(text)) texts_.push_back(text);
      write_instruction_texts(file);
    }
    if (std::filesystem::exists(recipe_)) earlier_ = read_file(recipe_);
    write_file_atomic(recipe_, plan.script.recipe);
  }

  void undo() const {
    for (const auto& text : texts_) std::filesystem::remove(text);
    if (earlier_) return write_file_atomic(recipe_, *earlier_);
    std::filesystem::remove(recipe_);
  }

 private:
  std::filesystem::path recipe_;
  NewFolder made_;
  std::optional<NewFolder> texts_folder_;
  std::vector<std::filesystem::path> texts_;  // that were not there
  std::optional<std::string> earlier_;
};

// The variables of the Neuron runtime, its compiler and XLA, which a job script may set for this command.
void note_variables() {
  std::string names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!variable.starts_with("NEURON_") && !variable.starts_with("XLA_")) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", variable.substr(0, variable.find('=')));
  }
  if (!names.empty()) log::info("variables of XLA and the Neuron runtime are ignored: {}", names);
}

// Runs `stretto train` or `stretto test` with the recipe, in a child process.
ChildEnd run_stage(const LlamaPlan& plan, const LlamaArguments& given, Verb verb) {
  return run_in_child([&] {
    arguments::RecipeArguments arguments;
    arguments.recipe = plan.script.recipe_file();
    arguments.strategy = given.strategy;
    arguments.overrides = given.settings;
    arguments.flags = plan.script.flags;
    arguments.launch = given.launch;
    arguments.launch.stop_exit_code = exit_stopped;
    const Recipe recipe = arguments::load_checked(arguments, verb);
    // Ranks accept the recipe of a launcher with the same arguments only.
    std::vector<std::string> words = {verb == Verb::train ? "train" : "test", arguments.recipe.string()};
    words.insert(words.end(), given.settings.begin(), given.settings.end());
    if (!given.strategy.empty()) words.push_back("--strategy=" + given.strategy);
    return arguments::launch_recipe(arguments, recipe, verb, rank_command(words));
  });
}

// Prints the results of `stretto test`, and adds them to results.json.
void report_evaluation(const std::filesystem::path& run) {
  const nlohmann::ordered_json results = read_json(run / "test_results.json");
  const nlohmann::ordered_json at = {{"Global step", read_json(run / "summary.json").value("steps", 0)}};
  std::cout << "***** eval metrics *****\n";
  std::vector<track::Measurement> measurements;
  for (const auto& [name, value] : results.items()) {
    const auto number = metric_of_json(value);
    if (!number) continue;
    std::cout << "  " << metric_text(name, *number) << "\n";
    measurements.push_back({"Evaluation " + name, *number, "", at});
  }
  arguments::flush_standard_output();
  track::add_measurements(run / "results.json", measurements);
}

int run_plan(const LlamaPlan& plan, const LlamaArguments& arguments) {
  if (cluster::is_rank())
    throw ConfigError(
        "run-llama: this process is a rank of another launcher (torchrun, srun, mpirun), but run-llama starts its own ranks; start it once per host, with -N");
  for (const std::string& note : plan.script.notes) log::info("{}", note);
  note_variables();
  const std::filesystem::path run = plan.script.run_folder();
  if (std::filesystem::exists(run) && !std::filesystem::is_directory(run))
    throw ConfigError("--output_dir {}: it is a file; expected a folder", run.string());
  for (const compat::SavedBlocks& blocks : plan.blocks) require_block_length(blocks);
  const Preparation preparation(plan);
  ChildEnd end = run_stage(plan, arguments, Verb::train);
  if (end.exit_code == exit_refused) {
    preparation.undo();
    log::info("--print-recipe shows the recipe for these flags");
  }
  if (end.exit_code == exit_stopped) {
    log::info("{}: the run has not finished; the same command{} continues it", run.string(),
              plan.loads_step ? " without --load_step" : "");
    return arguments.launch.stop_exit_code;
  }
  if (end.exit_code != 0 || !plan.script.evaluate) return end.exit_code;
  if (end.end_request != 0) return 128 + end.end_request;
  end = run_stage(plan, arguments, Verb::test);
  const launch::HostOptions hosts = arguments::host_options(arguments.launch.hosts);
  const bool is_first_host = hosts.nodes == 1 || hosts.node_rank == 0;
  if (end.exit_code == 0 && is_first_host) report_evaluation(run);
  return end.exit_code;
}

}  // namespace

void add_run_llama(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "run-llama", "Train a Llama by the flags of NeuronxDistributed's run_llama_nxd_ptl.py");
  auto arguments = std::make_shared<LlamaArguments>();
  verb->allow_extras();
  verb->footer(
      "All other flags are those of the script, such as --model_path, --data_dir, --max_steps, --tensor_parallel_size and --use_zero1_optimizer, with --output_dir (runs/llama), --validation_dir and --precision (bf16).");
  verb->add_flag("--print-recipe", arguments->print_recipe, "Print the recipe for these flags, and exit");
  verb->add_option("--strategy,--strat", arguments->strategy, "Sharding strategy: see stretto strats")
      ->type_name("NAME");
  verb->add_option("--set", arguments->settings, "Override a setting of the recipe that the flags make")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  arguments::add_launch_arguments(*verb, arguments->launch);
  verb->callback([verb, arguments, &exit_code] {
    arguments::join_job(arguments->launch);
    const LlamaPlan plan = compat::translate_llama_script(verb->remaining());
    if (arguments->print_recipe) {
      if (!arguments->settings.empty())
        throw ConfigError(
            "--print-recipe shows the recipe of the script's flags; pass --set to stretto train with that recipe");
      for (const std::string& note : plan.script.notes) std::cout << "# " << note << "\n";
      std::cout << plan.script.recipe;
      return;
    }
    exit_code = run_plan(plan, *arguments);
  });
}

}  // namespace stretto::cli
