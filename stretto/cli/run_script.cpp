#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include <spawn.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/cli/script_results.h"
#include "stretto/cli/verbs.h"
#include "stretto/command/launch_arguments.h"
#include "stretto/command/standard_output.h"
#include "stretto/config/foreign/flair_script.h"
#include "stretto/launch/process/command_line.h"

extern char** environ;

namespace stretto::cli {
namespace {

using foreign::Script;
using foreign::ScriptPlan;

// What the last step of a run of Flair's script writes.
constexpr const char* finished_mark = "test.tsv";

struct ScriptArguments {
  bool print_recipe = false;
  int ranks = 0;
  std::string strategy;
};

// Runs this program with other arguments; returns its exit code.
int run_stretto(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), launch::own_command().at(0));
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, words[0], nullptr, nullptr, words.data(), environ);
  if (failed != 0) throw IoError("cannot run {}: {}", arguments[0], std::strerror(failed));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw IoError("cannot wait for {}: {}", arguments[0], std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Removes what an earlier run of the script left, which needs --overwrite_output_dir as there. A run that was interrupted is continued.
void prepare_output(const ScriptPlan& plan) {
  if (!std::filesystem::exists(plan.output_dir)) return make_folders(plan.output_dir);
  if (!std::filesystem::is_directory(plan.output_dir))
    throw ConfigError("--output_dir {}: it is a file; expected a folder", plan.output_dir.string());
  const bool finished = std::filesystem::exists(plan.output_dir / "config.json");
  if (plan.train && finished && !plan.overwrite)
    throw ConfigError("--output_dir {}: it holds a trained model; pass --overwrite_output_dir to train again",
                      plan.output_dir.string());
  if (!plan.train || !plan.overwrite) return;
  const std::filesystem::path recipe = plan.output_dir / "recipe.yaml",
                              done = plan.output_dir / finished_mark;
  if (plan.resume && std::filesystem::exists(recipe) && !std::filesystem::exists(done) &&
      read_file(recipe) == plan.recipe) {
    log::info("continuing the run in {}, which has not finished", plan.output_dir.string());
    return;
  }
  std::filesystem::remove(done);
  remove_folder(plan.output_dir / "run");
}

// Without --do_train, the model to evaluate takes the place of a trained one.
void link_model(const ScriptPlan& plan) {
  const std::filesystem::path run = plan.output_dir / "run";
  if (plan.train) return;
  if (!std::filesystem::exists(plan.model / "config.json"))
    throw ConfigError(
        "--model_name_or_path {}: there is no config.json in it; expected a fine-tuned model folder",
        plan.model.string());
  make_folders(run);
  std::filesystem::remove(run / "model");
  std::filesystem::create_directory_symlink(std::filesystem::absolute(plan.model), run / "model");
}

int run_plan(Script script, const ScriptPlan& plan, const ScriptArguments& arguments) {
  for (const std::string& note : plan.notes) log::info("{}", note);
  prepare_output(plan);
  const std::filesystem::path recipe = plan.output_dir / "recipe.yaml";
  write_file_atomic(recipe, plan.recipe);
  link_model(plan);
  std::vector<std::string> launch;
  const int64_t ranks = arguments.ranks > 0 ? arguments.ranks : plan.ranks.value_or(0);
  if (ranks > 0) launch = {"-N", std::to_string(ranks)};
  if (!arguments.strategy.empty()) launch.insert(launch.end(), {"--strategy", arguments.strategy});
  ScriptResults results(script, plan);
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 2, launch.begin(), launch.end());
    return run_stretto(std::move(words));
  };
  if (plan.train) {
    if (const int code = run({"train", recipe.string()}); code != 0) return code;
    results.add_training();
  }
  if (plan.evaluate) {
    if (const int code = run({"test", recipe.string(), "--set", "data.test=" + plan.validation->string()});
        code != 0)
      return code;
    results.add_test("eval");
  }
  if (plan.predict) {
    if (const int code = run({"test", recipe.string()}); code != 0) return code;
    results.add_test("predict");
  }
  return 0;
}

void add_script(CLI::App& app, int& exit_code, const char* name, const char* help, Script script) {
  CLI::App* verb = app.add_subcommand(name, help);
  auto arguments = std::make_shared<ScriptArguments>();
  verb->allow_extras();
  verb->footer(
      script == Script::flair_ner
          ? "All other flags are those of the script, such as --model_name_or_path, --dataset_name FOLDER, --num_epochs and --output_dir."
          : "All other flags are those of the script, such as --model_name_or_path, --train_file, --do_train and --output_dir.");
  verb->add_flag("--print-recipe", arguments->print_recipe,
                 "Print the recipe that the flags mean, and do nothing");
  command::add_ranks_option(*verb, arguments->ranks, "Number of ranks on this host");
  const bool flair = script == Script::flair_ner;  // which has a --strategy of its own
  if (!flair) {
    verb->add_option("--strategy,--strat", arguments->strategy, "Sharding strategy: see stretto strats")
        ->type_name("NAME");
  }
  verb->callback([verb, arguments, script, flair, &exit_code] {
    const ScriptPlan plan = flair ? foreign::translate_flair_script(verb->remaining())
                                  : foreign::translate_script(script, verb->remaining());
    if (arguments->print_recipe) {
      for (const std::string& note : plan.notes) std::cout << "# " << note << "\n";
      std::cout << plan.recipe;
      return;
    }
    exit_code = run_plan(script, plan, *arguments);
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
  add_script(
      app, exit_code, "run-flair-ner",
      "Train and evaluate by the flags of the script custom_run_ner.py for Flair, or by one .json file of them",
      Script::flair_ner);
}

}  // namespace stretto::cli
