#pragma once

#include <CLI/CLI.hpp>

namespace stretto::cli {

// The verbs of `stretto data`.
void add_data_inspect(CLI::App& data, int& exit_code);
void add_data_tokenize(CLI::App& data, int& exit_code);

}  // namespace stretto::cli
