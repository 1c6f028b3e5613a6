#include <iostream>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/cluster/managers.h"
#include "stretto/compat/flair_script.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto/child_process.h"
#include "stretto/programs/stretto/earlier_run.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/script_results.h"
#include "stretto/programs/stretto/split_lines.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/weights/hub_cache.h"

namespace stretto::cli {
namespace {

using compat::Script;
using compat::ScriptPlan;

struct ScriptArguments {
  bool print_recipe = false;
  int ranks = 0;
  std::string strategy;
  int64_t tp = 0;  // 0: not given
  bool sequence_parallel = false;
  std::vector<std::string> settings;  // KEY=VALUE, which override the recipe
};

// Links the model to evaluate to the place of a trained one, for a command without --do_train.
void link_model(const ScriptPlan& plan, const std::filesystem::path& model) {
  const std::filesystem::path link = plan.run_folder() / "model";
  make_folders(plan.run_folder());
  if (std::filesystem::exists(link) && !std::filesystem::is_symlink(link))
    throw ConfigError("{}: it is a folder; expected a link that an earlier evaluation made", link.string());
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(std::filesystem::absolute(model), link);
}

// The folder of --model_name_or_path, which may be a name in the model cache.
std::filesystem::path evaluated_model(const ScriptPlan& plan) {
  const std::filesystem::path model = hub::resolve_model(plan.model);
  if (std::filesystem::exists(model / "config.json")) return model;
  throw ConfigError(
      "--model_name_or_path {}: there is no config.json in it; expected a fine-tuned model folder",
      plan.model.string());
}

// Runs the stages of a script one after the other, each in a separate process, like `stretto train` and
// `stretto test`.
class Stages {
 public:
  Stages(Script script, const ScriptPlan& plan, const ScriptArguments& arguments)
      : plan_(plan), arguments_(arguments), earlier_(plan), results_(script, plan) {}

  // Returns the exit code.
  int run() {
    const bool replaces = replaces_earlier_run(plan_);
    const std::filesystem::path model = plan_.train ? plan_.model : evaluated_model(plan_);
    earlier_.begin(replaces);
    try {
      split_lines(plan_);
    } catch (const ConfigError&) {
      earlier_.restore();
      throw;
    }
    if (!plan_.train) link_model(plan_, model);
    if (plan_.train && !done(Verb::train, {})) return code_;
    if (plan_.train) results_.add_training();
    const std::vector<std::string> validation = {
        "data.test=" + (plan_.validation ? plan_.validation->string() : ""),
        "data.max_test_samples=" + plan_.max_eval_samples};
    if (plan_.evaluate && !done(Verb::test, validation)) return code_;
    if (plan_.evaluate) results_.add_test("eval");
    if (plan_.predict && !done(Verb::test, {})) return code_;
    if (plan_.predict) results_.add_test("predict");
    return 0;
  }

 private:
  // Runs a stage. Returns whether it completed; if not, code_ is the exit code.
  bool done(Verb verb, const std::vector<std::string>& overrides) {
    if (end_request_ != 0) {  // the signal arrived after the previous stage had ended
      code_ = 128 + end_request_;
      return false;
    }
    const bool first = !begun_;
    begun_ = true;
    const ChildEnd end = run_in_child([&] { return run_stage(verb, overrides); });
    code_ = end.exit_code;
    end_request_ = end.end_request;
    if (first && code_ == exit_refused)
      earlier_.restore_and_explain();
    else
      earlier_.keep();
    // A part of a run (training.steps_this_run) ends without a summary.
    const bool paused =
        verb == Verb::train && code_ == 0 && !std::filesystem::exists(plan_.run_folder() / "summary.json");
    if (code_ != exit_stopped && !paused) return code_ == 0;
    log::info("{}: the run has not finished; the same command{} continues it", plan_.output_dir.string(),
              plan_.overwrite && !plan_.resume ? " without --overwrite_output_dir" : "");
    code_ = 0;
    return false;
  }

  int run_stage(Verb verb, const std::vector<std::string>& of_stage) const {
    std::vector<std::string> overrides = arguments_.settings;
    overrides.insert(overrides.end(), of_stage.begin(), of_stage.end());
    arguments::RecipeArguments arguments;
    arguments.recipe = plan_.recipe_file();
    arguments.overrides = overrides;
    arguments.strategy = arguments_.strategy;
    arguments.tp = arguments_.tp;
    arguments.sequence_parallel = arguments_.sequence_parallel;
    arguments.flags = plan_.flags;
    arguments.launch.ranks =
        arguments_.ranks > 0 ? arguments_.ranks : static_cast<int>(plan_.ranks.value_or(0));
    arguments.launch.stop_exit_code = exit_stopped;
    const Recipe recipe = arguments::load_checked(arguments, verb);
    std::vector<std::string> words = {verb == Verb::train ? "train" : "test", arguments.recipe.string()};
    words.insert(words.end(), overrides.begin(), overrides.end());
    // Ranks accept the recipe of a launcher with the same arguments only.
    if (!arguments.strategy.empty()) words.push_back("--strategy=" + arguments.strategy);
    if (arguments.tp > 0) words.push_back(fmt::format("--tp={}", arguments.tp));
    if (arguments.sequence_parallel) words.push_back("--sequence-parallel");
    return arguments::launch_recipe(arguments, recipe, verb, rank_command(words));
  }

  const ScriptPlan& plan_;
  const ScriptArguments& arguments_;
  EarlierRun earlier_;
  ScriptResults results_;
  bool begun_ = false;
  int code_ = 0;
  int end_request_ = 0;  // the signal that asked for the end of the script
};

int run_plan(Script script, const ScriptPlan& plan, const ScriptArguments& arguments,
             const std::string& verb) {
  if (cluster::is_rank())
    throw ConfigError(
        "{}: this process is a rank of another launcher (torchrun, srun, mpirun), but {} starts its own ranks; start it once, with -N",
        verb, verb);
  for (const std::string& note : plan.notes) log::info("{}", note);
  if (arguments.tp > 1) {
    log::info(
        "--tp {}: as in transformers, --per_device_train_batch_size is the batch of a group of {} ranks, which divide each layer and read the same samples",
        arguments.tp, arguments.tp);
  }
  if (std::filesystem::exists(plan.output_dir) && !std::filesystem::is_directory(plan.output_dir))
    throw ConfigError("--output_dir {}: it is a file; expected a folder", plan.output_dir.string());
  return Stages(script, plan, arguments).run();
}

void add_script(CLI::App& app, int& exit_code, const char* name, const char* help, Script script) {
  CLI::App* verb = app.add_subcommand(name, help);
  auto arguments = std::make_shared<ScriptArguments>();
  verb->allow_extras();
  verb->footer(
      script == Script::flair_ner
          ? "All other flags are those of the script, such as --model_name_or_path, --dataset_name FOLDER, --num_epochs and --output_dir."
          : "All other flags are those of the script, such as --model_name_or_path, --train_file, --do_train and --output_dir.");
  verb->add_flag("--print-recipe", arguments->print_recipe, "Print the recipe for these flags, and exit");
  arguments::add_ranks_option(*verb, arguments->ranks, "Number of ranks on this host");
  const bool flair = script == Script::flair_ner;  // the script has its own --strategy
  if (!flair) {
    verb->add_option("--strategy,--strat", arguments->strategy, "Sharding strategy: see stretto strats")
        ->type_name("NAME");
    verb->add_option("--tp", arguments->tp, "Number of ranks among which each layer is divided")
        ->type_name("N")
        ->check(arguments::whole_number_from(1, 1'000'000));
    verb->add_flag("--sequence-parallel", arguments->sequence_parallel,
                   "Divide norms, dropout and residuals among these ranks, too");
  }
  verb->add_option("--set", arguments->settings, "Override a setting of the recipe that the flags make")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->callback([verb, arguments, script, flair, &exit_code] {
    const ScriptPlan plan = flair ? compat::translate_flair_script(verb->remaining())
                                  : compat::translate_script(script, verb->remaining());
    if (arguments->print_recipe) {
      if (!arguments->settings.empty())
        throw ConfigError(
            "--print-recipe shows the recipe of the script's flags; pass --set to stretto train with it");
      for (const std::string& note : plan.notes) std::cout << "# " << note << "\n";
      std::cout << plan.recipe;
      return;
    }
    exit_code = run_plan(script, plan, *arguments, verb->get_name());
  });
}

}  // namespace

void add_run_scripts(CLI::App& app, int& exit_code) {
  add_script(app, exit_code, "run-glue", "Train and evaluate by the flags of Hugging Face's run_glue.py",
             Script::glue);
  add_script(app, exit_code, "run-ner", "Train and evaluate by the flags of Hugging Face's run_ner.py",
             Script::ner);
  add_script(app, exit_code, "run-qa", "Train and evaluate by the flags of Hugging Face's run_qa.py",
             Script::qa);
  add_script(app, exit_code, "run-clm",
             "Train and evaluate a language model by the flags of Hugging Face's run_clm.py", Script::clm);
  add_script(
      app, exit_code, "run-flair-ner",
      "Train and evaluate by the flags of the script custom_run_ner.py for Flair, or by one .json file of them",
      Script::flair_ner);
}

}  // namespace stretto::cli
