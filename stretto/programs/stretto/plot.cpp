#include <memory>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/chart_arguments.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/report/run_data.h"

namespace stretto::cli {
namespace {

struct PlotArguments {
  std::vector<std::filesystem::path> runs;
  std::string metric = "loss";
  bool by_epoch = false;
  ChartArguments chart;
};

void plot(const PlotArguments& arguments) {
  std::vector<report::RunData> runs;
  for (const auto& folder : arguments.runs) runs.push_back(report::read_run(folder));
  const report::Chart chart = report::chart_of(runs, arguments.metric, arguments.by_epoch);
  if (chart.curves.empty()) {
    const auto known = report::metric_names(runs);
    if (known.empty()) {
      throw ConfigError("{} has recorded no values yet: metrics.jsonl is missing or empty",
                        runs.size() == 1 ? runs[0].folder.string() : "none of the runs");
    }
    throw ConfigError("no run has a metric named \"{}\"{}; recorded are {}", arguments.metric,
                      did_you_mean(arguments.metric, known), fmt::join(known, ", "));
  }
  show_chart(chart, arguments.chart);
}

}  // namespace

void add_plot(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("plot", "Draw the curves of runs in the terminal or as SVG");
  auto arguments = std::make_shared<PlotArguments>();
  verb->add_option("run", arguments->runs, "Output folders of runs")->required()->type_name("FOLDER");
  verb->add_option("--metric", arguments->metric, "Name of a value in metrics.jsonl (default: loss)")
      ->type_name("NAME");
  verb->add_flag("--epochs", arguments->by_epoch, "Draw over epochs instead of steps");
  add_chart_arguments(*verb, arguments->chart);
  verb->callback([arguments, &exit_code] {
    plot(*arguments);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
