#include "stretto/programs/stretto/search_results.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/table.h"
#include "stretto/report/axis.h"
#include "stretto/report/page.h"

namespace stretto::cli {

report::SearchResults rank_trials(const SearchFolder& folder, const std::vector<SearchParameter>& parameters,
                                  uint64_t seed, const SearchMetric& metric) {
  report::SearchResults results{.metric = metric.name, .parameters = {}, .trials = {}};
  for (const SearchParameter& parameter : parameters) {
    results.parameters.push_back({.name = parameter.name,
                                  .is_number = parameter.kind != SearchParameter::Kind::choice,
                                  .is_log = parameter.kind == SearchParameter::Kind::log});
  }
  for (int64_t trial = 1; trial <= folder.trials(); ++trial) {
    const TrialState state = read_trial(folder.of(trial), metric, no_limit);
    report::SearchedTrial& row = results.trials.emplace_back();
    row.name = folder.name_of(trial);
    for (const SearchParameter& parameter : parameters) row.values.push_back(parameter.draw(seed, trial));
    if (!folder.has_failed(trial)) row.score = state.best;
    row.state = folder.has_failed(trial) ? "failed"
                : state.finished         ? "finished"
                                         : "stopped after " + counted(state.steps, "step");
  }
  std::ranges::stable_sort(results.trials, [&](const auto& a, const auto& b) {
    if (!a.score || !b.score) return a.score.has_value() && !b.score.has_value();
    return metric.larger_is_better ? *a.score > *b.score : *a.score < *b.score;
  });
  return results;
}

void report_search(SearchFolder& folder, const report::SearchResults& results) {
  std::vector<Cells> rows = {{"trial"}};
  for (const report::SearchedParameter& parameter : results.parameters) rows[0].push_back(parameter.name);
  rows[0].insert(rows[0].end(), {results.metric, "state"});
  std::vector<report::RunData> runs;
  nlohmann::json table = nlohmann::json::array();
  for (const report::SearchedTrial& trial : results.trials) {
    Cells& row = rows.emplace_back(Cells{trial.name});
    row.insert(row.end(), trial.values.begin(), trial.values.end());
    row.insert(row.end(), {trial.score ? report::value_text(*trial.score) : "", trial.state});
    nlohmann::json settings = nlohmann::json::object();
    for (size_t i = 0; i < trial.values.size(); ++i) settings[results.parameters[i].name] = trial.values[i];
    table.push_back({{"trial", trial.name},
                     {"settings", settings},
                     {results.metric, trial.score ? nlohmann::json(*trial.score) : nlohmann::json()},
                     {"state", trial.state}});
    const auto run = folder.path() / trial.name;
    if (report::is_run(run)) runs.push_back(report::read_run(run));
  }
  folder.write_table(std::move(table));
  print_table(rows, /*numbers_right=*/true);
  if (!results.trials[0].score)
    throw ConfigError("all trials have failed; the messages above give the reasons");
  const auto page = folder.path() / "report.html";
  write_file_atomic(page, report::html_page(runs, STRETTO_VERSION, report::search_section(results)));
  fmt::print("best model: {}\nreport: {}\n", (folder.path() / results.trials[0].name / "model").string(),
             page.string());
}

}  // namespace stretto::cli
