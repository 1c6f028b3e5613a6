#pragma once

#include <CLI/CLI.hpp>

namespace stretto::cli {

// A verb adds its sub-command to `app`; when the user chose it, its callback does the work and leaves the process's
// exit code in `exit_code`. One file a verb.
void add_doctor(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_launch(CLI::App& app, int& exit_code);
void add_new(CLI::App& app, int& exit_code);
void add_profile(CLI::App& app, int& exit_code);
void add_schema(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_train(CLI::App& app, int& exit_code);
void add_test(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_checkpoints(CLI::App& app, int& exit_code);

}  // namespace stretto::cli
