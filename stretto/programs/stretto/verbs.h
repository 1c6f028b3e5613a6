#pragma once

#include <CLI/CLI.hpp>

namespace stretto::cli {

// Each function adds the subcommand of a verb to `app`; its callback runs the verb and sets the process's
// exit code. One file per verb.
void add_convert(CLI::App& app, int& exit_code);
void add_data(CLI::App& app, int& exit_code);  // data tokenize, data inspect
void add_doctor(CLI::App& app, int& exit_code);
void add_export_corpus(CLI::App& app);
void add_generate(CLI::App& app, int& exit_code);
void add_help(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_launch(CLI::App& app, int& exit_code);
void add_new(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_plot(CLI::App& app, int& exit_code);
void add_plot_lr(CLI::App& app, int& exit_code);
void add_profile(CLI::App& app, int& exit_code);
void add_pull(CLI::App& app);
void add_report(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);
void add_schema(CLI::App& app, int& exit_code);
void add_run_llama(CLI::App& app, int& exit_code);
void add_run_scripts(CLI::App& app, int& exit_code);  // run-glue, run-ner, run-qa, run-flair-ner
void add_score(CLI::App& app, int& exit_code);
void add_search(CLI::App& app, int& exit_code);
void add_strats(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_track(CLI::App& app, int& exit_code);
void add_train(CLI::App& app, int& exit_code);
void add_test(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_checkpoints(CLI::App& app, int& exit_code);

}  // namespace stretto::cli
