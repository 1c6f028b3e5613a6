#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>

#include <spawn.h>
#include <sys/wait.h>

#include "stretto/archive/run_lock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/cli/script_results.h"
#include "stretto/cli/verbs.h"
#include "stretto/command/launch_arguments.h"
#include "stretto/command/standard_output.h"
#include "stretto/config/foreign/flair_script.h"
#include "stretto/hub/cache.h"
#include "stretto/launch/process/command_line.h"

extern char** environ;

namespace stretto::cli {
namespace {

using foreign::Script;
using foreign::ScriptPlan;

// What the last step of a run of Flair's script writes.
constexpr const char* finished_mark = "test.tsv";
// The exit code of a command that was refused before it did anything.
constexpr int refused = 2;

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

bool is_inside(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const std::string relative =
      std::filesystem::weakly_canonical(path).lexically_relative(std::filesystem::weakly_canonical(folder));
  return !relative.empty() && !relative.starts_with("..");
}

// A finished run of the script is replaced only with --overwrite_output_dir, as there; an interrupted one is continued. Returns whether
// a new run replaces that in the folder.
bool replaces_earlier_run(const ScriptPlan& plan) {
  const bool finished = std::filesystem::exists(plan.output_dir / "config.json");
  if (plan.train && finished && !plan.overwrite)
    throw ConfigError("--output_dir {}: it holds a trained model; pass --overwrite_output_dir to train again",
                      plan.output_dir.string());
  if (!plan.train || !plan.overwrite) return false;
  const std::filesystem::path recipe = plan.recipe_file();
  const bool started = plan.resume && std::filesystem::exists(recipe) && read_file(recipe) == plan.recipe &&
                       !std::filesystem::exists(plan.output_dir / finished_mark);
  if (started) {
    log::info("continuing the run in {}, which has not finished", plan.output_dir.string());
    return false;
  }
  if (is_inside(plan.model, plan.run_folder()))
    throw ConfigError(
        "--model_name_or_path {}: it is in {}, which this command replaces; pass another --output_dir",
        plan.model.string(), plan.run_folder().string());
  return std::filesystem::exists(plan.run_folder());
}

// An earlier run of the script in --output_dir, which stands aside while a new one starts, and then is previous/. If the new one is
// refused before its first step, everything is as it was.
class EarlierRun {
 public:
  explicit EarlierRun(const ScriptPlan& plan)
      : run_(plan.output_dir / "run"),
        aside_(plan.output_dir / "previous.new"),
        recipe_(plan.recipe_file()),
        done_(plan.output_dir / finished_mark),
        done_aside_(done_.string() + ".earlier") {
    // A command that was killed in between has left it aside.
    if (!std::filesystem::exists(aside_)) return;
    const archive::RunLock lock(run_);
    new_run_has_begun() ? keep() : bring_back();
  }

  // Writes the new recipe; `replaced`: the run in the folder makes room.
  void begin(const ScriptPlan& plan, bool replaced) {
    make_folders(plan.output_dir);
    if (std::filesystem::exists(recipe_)) earlier_recipe_ = read_file(recipe_);
    if (replaced) {
      const archive::RunLock lock(run_);  // refuses while a run writes there
      rename_folder(run_, aside_);
      if (std::filesystem::exists(done_)) std::filesystem::rename(done_, done_aside_);
    }
    if (plan.train) {
      lock_.emplace(run_);
      ::setenv(archive::RunLock::variable, lock_->value().c_str(), 1);  // `stretto train` takes it over
    }
    write_file_atomic(recipe_, plan.recipe);
  }

  void restore() {
    if (new_run_has_begun()) return keep();
    bring_back();
    if (earlier_recipe_) {
      write_file_atomic(recipe_, *earlier_recipe_);
    } else {
      std::filesystem::remove(recipe_);
    }
    log::info("{}--print-recipe shows the recipe that these flags mean",
              earlier_recipe_ ? fmt::format("{} is as it was; ", recipe_.string()) : "");
  }

  void keep() {
    std::filesystem::remove(done_aside_);
    if (!std::filesystem::exists(aside_)) return;
    const std::filesystem::path previous = aside_.parent_path() / "previous";
    replace_folder(aside_, previous);
    log::info("the earlier run is in {}", previous.string());
  }

  std::string recipe() const { return recipe_.string(); }

 private:
  bool new_run_has_begun() const {
    const std::filesystem::path checkpoints = run_ / "checkpoints";
    return std::filesystem::exists(run_ / "model") ||
           (std::filesystem::exists(checkpoints) && !std::filesystem::is_empty(checkpoints));
  }

  void bring_back() {
    if (!std::filesystem::exists(aside_)) return;
    remove_folder(run_);
    rename_folder(aside_, run_);
    if (std::filesystem::exists(done_aside_)) std::filesystem::rename(done_aside_, done_);
  }

  std::filesystem::path run_, aside_, recipe_, done_, done_aside_;
  std::optional<std::string> earlier_recipe_;
  std::optional<archive::RunLock> lock_;
};

// Without --do_train, the model to evaluate takes the place of a trained one.
void link_model(const ScriptPlan& plan, const std::filesystem::path& model) {
  const std::filesystem::path link = plan.run_folder() / "model";
  make_folders(plan.run_folder());
  if (std::filesystem::exists(link) && !std::filesystem::is_symlink(link))
    throw ConfigError("{}: it is a folder; expected a link that an earlier evaluation made", link.string());
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(std::filesystem::absolute(model), link);
}

// The folder of --model_name_or_path, which may be a name in the cache of models.
std::filesystem::path evaluated_model(const ScriptPlan& plan) {
  const std::filesystem::path model = hub::resolve_model(plan.model);
  if (std::filesystem::exists(model / "config.json")) return model;
  throw ConfigError(
      "--model_name_or_path {}: there is no config.json in it; expected a fine-tuned model folder",
      plan.model.string());
}

int run_plan(Script script, const ScriptPlan& plan, const ScriptArguments& arguments) {
  for (const std::string& note : plan.notes) log::info("{}", note);
  if (std::filesystem::exists(plan.output_dir) && !std::filesystem::is_directory(plan.output_dir))
    throw ConfigError("--output_dir {}: it is a file; expected a folder", plan.output_dir.string());
  EarlierRun earlier(plan);
  const bool replaces = replaces_earlier_run(plan);
  const std::filesystem::path model = plan.train ? plan.model : evaluated_model(plan);
  earlier.begin(plan, replaces);
  if (!plan.train) link_model(plan, model);
  std::vector<std::string> launch;
  const int64_t ranks = arguments.ranks > 0 ? arguments.ranks : plan.ranks.value_or(0);
  if (ranks > 0) launch = {"-N", std::to_string(ranks)};
  if (!arguments.strategy.empty()) launch.insert(launch.end(), {"--strategy", arguments.strategy});
  ScriptResults results(script, plan);
  bool trained = false;
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 2, launch.begin(), launch.end());
    const int code = run_stretto(std::move(words));
    if (code == refused && !trained) {
      earlier.restore();
    } else {
      earlier.keep();
    }
    return code;
  };
  if (plan.train) {
    if (const int code = run({"train", earlier.recipe()}); code != 0) return code;
    trained = true;
    results.add_training();
  }
  if (plan.evaluate) {
    const int code = run({"test", earlier.recipe(), "--set", "data.test=" + plan.validation->string(),
                          "--set", "data.max_test_samples=" + plan.max_eval_samples});
    if (code != 0) return code;
    results.add_test("eval");
  }
  if (plan.predict) {
    if (const int code = run({"test", earlier.recipe()}); code != 0) return code;
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
