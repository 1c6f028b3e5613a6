#include <memory>

#include <fmt/format.h>

#include "stretto/base/files.h"
#include "stretto/base/path_error.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/report/page.h"

namespace stretto::cli {
namespace {

struct ReportArguments {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path output;
};

void write_report(const ReportArguments& arguments) {
  std::vector<report::RunData> runs;
  for (const auto& folder : arguments.runs) runs.push_back(report::read_run(folder));
  std::filesystem::path output = arguments.output;
  if (output.empty()) output = runs.size() == 1 ? runs[0].folder / "report.html" : "report.html";
  require_file_path(output);
  write_file_atomic(output, report::html_page(runs, STRETTO_VERSION));
  fmt::print("{}\n", output.string());
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("report", "Write an HTML page about runs: curves, results, settings, predictions");
  auto arguments = std::make_shared<ReportArguments>();
  verb->add_option("run", arguments->runs, "Output folders of runs")
      ->required()
      ->type_name("FOLDER")
      ->expected(-1);
  verb->add_option("-o,--output", arguments->output,
                   "The page to write (default: report.html in the run's folder, or here for several runs)")
      ->type_name("FILE");
  verb->callback([arguments, &exit_code] {
    write_report(*arguments);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
