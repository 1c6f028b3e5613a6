#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

using Cells = std::vector<std::string>;

// Prints rows of equal length as columns, the first row as header. Cells are left-aligned; with
// `numbers_right`, columns that contain only numbers are right-aligned.
void print_table(const std::vector<Cells>& rows, bool numbers_right = false);

}  // namespace stretto::cli
