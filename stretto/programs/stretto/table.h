#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

using Cells = std::vector<std::string>;

// Prints rows of equal length as columns, the first row as header. Cells are to the left, with `numbers_right` those of columns that
// hold only numbers to the right.
void print_table(const std::vector<Cells>& rows, bool numbers_right = false);

}  // namespace stretto::cli
