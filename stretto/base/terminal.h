#pragma once

#include <string>

namespace stretto {

// A descriptor of the terminal on which progress is shown: standard error, or the one that stretto's launcher
// passes to rank 0 (STRETTO_TERMINAL). -1: there is none.
int progress_terminal();

// The width of that terminal in characters; 80 if it is unknown.
int progress_columns();

// "[####------]" with `cells` cells, the share `done` (0 to 1) of them full.
std::string progress_cells(double done, int cells);

}  // namespace stretto
