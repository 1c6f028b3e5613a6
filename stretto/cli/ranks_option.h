#pragma once

#include <CLI/CLI.hpp>

namespace stretto::cli {

// Adds -N, -n, --nproc-per-node and --nproc_per_node to a verb: how many ranks to start on this host.
// Understands
// "-N 2", "-N2" and "-N=2" alike. `ranks` keeps its value where the option is not given.
inline CLI::Option* add_ranks_option(CLI::App& verb, int& ranks) {
  CLI::Option* option = verb.add_option("-N,-n,--nproc-per-node,--nproc_per_node", ranks,
                                        "Ranks to start on this host (default: one a GPU, else one)");
  option->type_name("N")->check(CLI::Range(1, 4096));
  // Of a short option CLI11 takes "=2" for the value; checks and transforms run last to first.
  return option->transform(
      [](const std::string& text) { return text.starts_with('=') ? text.substr(1) : text; });
}

}  // namespace stretto::cli
