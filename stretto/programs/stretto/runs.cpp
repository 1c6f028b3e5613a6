#include <algorithm>
#include <iostream>
#include <memory>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/path_error.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/table.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/report/axis.h"
#include "stretto/report/run_data.h"
#include "stretto/track/csv_log.h"

namespace stretto::cli {
namespace {

using report::RunData;

// The monitored metric of the best model: "accuracy 0.952".
std::string best_of(const RunData& run) {
  const auto monitor = run.settings.find("checkpoint.monitor");
  const std::string name = monitor == run.settings.end() ? "loss" : monitor->second;
  const std::string value = report::value_text_in(run.dev_results, name);
  return value.empty() ? "" : name + " " + value;
}

std::string duration(const RunData& run) {
  const auto seconds = number_in(run.summary, "seconds");
  return seconds ? human_duration(*seconds) : "";
}

Cells row_of(const RunData& run) {
  const auto loss = run.last("loss");
  return {run.folder.string(),
          state_name(run.state),
          std::to_string(run.steps()),
          loss ? report::value_text(*loss) : "",
          best_of(run),
          report::value_text_in(run.summary, "samples_per_second"),
          duration(run)};
}

nlohmann::ordered_json json_of(const RunData& run) {
  nlohmann::ordered_json last = nlohmann::ordered_json::object();
  for (const auto& [name, points] : run.metrics) last[name] = points.back().value;
  return {{"folder", run.folder.string()},
          {"state", state_name(run.state)},
          {"steps", run.steps()},
          {"last", last},
          {"summary", run.summary},
          {"dev_results", run.dev_results},
          {"test_results", run.test_results}};
}

void list(const std::filesystem::path& folder, bool json) {
  const auto found = report::find_runs(folder);
  if (json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const auto& path : found) all.push_back(json_of(report::read_run(path)));
    // Names of folders may not be UTF-8.
    std::cout << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  if (found.empty()) throw ConfigError("{} holds no output folder of a run", folder.string());
  std::vector<Cells> rows = {{"run", "state", "steps", "loss", "best", "samples/s", "time"}};
  for (const auto& path : found) rows.push_back(row_of(report::read_run(path)));
  print_table(rows, /*numbers_right=*/true);
}

std::vector<RunData> read_all(const std::vector<std::filesystem::path>& folders) {
  std::vector<RunData> runs;
  for (const auto& folder : folders) runs.push_back(report::read_run(folder));
  return runs;
}

Cells header(const std::vector<RunData>& runs, const std::string& first) {
  Cells row = {first};
  for (const RunData& run : runs) row.push_back(run.folder.string());
  return row;
}

void diff(const std::vector<RunData>& runs) {
  const auto rows = report::differences(runs);
  if (rows.empty()) {
    fmt::print("all settings are equal\n");
    return;
  }
  std::vector<Cells> table = {header(runs, "setting")};
  for (const auto& [name, values] : rows) {
    table.push_back({name});
    for (const std::string& value : values) table.back().push_back(report::shorten(value, 40, false));
  }
  print_table(table, /*numbers_right=*/true);
}

void compare(const std::vector<RunData>& runs) {
  std::vector<Cells> table = {header(runs, "value")};
  const auto add = [&](const std::string& name, const auto& value_of) {
    Cells row = {name};
    for (const RunData& run : runs) row.push_back(value_of(run));
    if (std::any_of(row.begin() + 1, row.end(), [](const std::string& cell) { return !cell.empty(); }))
      table.push_back(std::move(row));
  };
  add("state", [](const RunData& run) { return std::string(state_name(run.state)); });
  add("steps", [](const RunData& run) { return std::to_string(run.steps()); });
  add("time", duration);
  add("ranks", [](const RunData& run) { return report::value_text_in(run.summary, "ranks"); });
  for (const std::string& name : report::metric_names(runs)) {
    add("last " + name, [&](const RunData& run) {
      const auto value = run.last(name);
      return value ? report::value_text(*value) : "";
    });
  }
  for (const auto& [title, member] :
       {std::pair("best ", &RunData::dev_results), {"test ", &RunData::test_results}}) {
    std::vector<std::string> names;
    for (const RunData& run : runs) {
      const nlohmann::json& results = run.*member;
      for (const auto& [name, value] : results.items()) {
        if (value.is_number() && std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    for (const std::string& name : names)
      add(title + name,
          [&, member = member](const RunData& run) { return report::value_text_in(run.*member, name); });
  }
  print_table(table, /*numbers_right=*/true);
  fmt::print("\n");
  diff(runs);
}

void export_values(const std::filesystem::path& run, std::filesystem::path output) {
  if (report::read_run(run).metrics.empty())
    throw ConfigError("{} has recorded no values yet: metrics.jsonl is missing or empty", run.string());
  if (output.empty()) output = run / "metrics.csv";
  require_file_path(output);
  track::write_metrics_csv(run / "metrics.jsonl", output);
  fmt::print("{}\n", output.string());
}

}  // namespace

void add_runs(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("runs", "List, compare and export runs");
  verb->require_subcommand(1);
  struct Arguments {
    std::filesystem::path folder = "runs", run, output;
    std::vector<std::filesystem::path> runs;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* listing = verb->add_subcommand("list", "List the runs in a folder");
  listing->add_option("folder", arguments->folder, "A folder with runs (default: runs)")->type_name("FOLDER");
  listing->add_flag("--json", arguments->json, "Print JSON");
  listing->callback([arguments, &exit_code] {
    list(arguments->folder, arguments->json);
    exit_code = 0;
  });
  const auto add = [&](const char* name, const char* help, void (*print)(const std::vector<RunData>&)) {
    CLI::App* sub = verb->add_subcommand(name, help);
    sub->add_option("run", arguments->runs, "Output folders of runs")
        ->required()
        ->type_name("FOLDER")
        ->expected(-2);
    sub->callback([arguments, print, &exit_code] {
      print(read_all(arguments->runs));
      exit_code = 0;
    });
  };
  add("compare", "Compare results, and settings that differ", compare);
  add("diff", "Show the settings that differ", diff);
  CLI::App* exporting = verb->add_subcommand("export", "Write the recorded values of a run as CSV");
  exporting->add_option("run", arguments->run, "Output folder of a run")->required()->type_name("FOLDER");
  exporting
      ->add_option("-o,--output", arguments->output,
                   "The file to write (default: metrics.csv in the run's folder)")
      ->type_name("FILE");
  exporting->callback([arguments, &exit_code] {
    export_values(arguments->run, arguments->output);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
