#include <iostream>
#include <memory>
#include <optional>

#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/weights/hub_pull.h"

namespace stretto::cli {
namespace {

struct PullArguments {
  std::string name;
  hub::PullOptions options;
};

void run_pull(const PullArguments& arguments) {
  std::optional<ProgressBar> progress;
  hub::PullEvents events;
  events.start = [&](const std::vector<hub::RemoteFile>& files, int64_t bytes) {
    if (files.empty()) return;
    log::info("{}: {} to fetch, {}", arguments.name, counted(std::ssize(files), "file"),
              human_bytes(static_cast<double>(bytes)));
    progress.emplace(arguments.name, bytes, "bytes");
  };
  events.file = [&](const hub::RemoteFile& file) { progress->describe(file.name); };
  events.received = [&](int64_t bytes) { progress->add(bytes); };
  const hub::Pulled pulled = hub::pull(arguments.name, arguments.options, events);
  progress.reset();
  if (pulled.fetched == 0) log::info("{}: all files are in the cache", arguments.name);
  if (!pulled.left_out.empty())
    log::info("skipped (--include PATTERN fetches them): {}", fmt::join(pulled.left_out, ", "));
  std::cout << pulled.snapshot.string() << "\n";
  arguments::flush_standard_output();
}

}  // namespace

void add_pull(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("pull", "Fetch a model folder into the cache that Hugging Face's tools share");
  auto arguments = std::make_shared<PullArguments>();
  verb->footer(
      "Prints the folder. Recipes (model.path, tokenizer.path) and `stretto predict --model` then find the model by its name. "
      "HF_ENDPOINT names another server, HF_TOKEN gives access to private models, HF_HOME or HF_HUB_CACHE moves the cache. An "
      "interrupted pull continues where it ended.");
  verb->add_option("NAME", arguments->name, "The model: owner/name")->required();
  verb->add_option("--revision", arguments->options.revision, "A branch, a tag or a commit")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option(
          "--include", arguments->options.include,
          "Fetch files that match this pattern too; without it safetensors, .json, .txt, .model, .jinja and .md of the "
          "top folder are fetched")
      ->type_name("PATTERN")
      ->delimiter(',');
  verb->callback([arguments] { run_pull(*arguments); });
}

}  // namespace stretto::cli
