#include "stretto/programs/stretto/table.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "stretto/report/chart.h"

namespace stretto::cli {

void print_table(const std::vector<Cells>& rows, bool numbers_right) {
  std::vector<size_t> widths(rows[0].size());
  std::vector<bool> right(rows[0].size(), numbers_right);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t column = 0; column < rows[i].size(); ++column) {
      const std::string& cell = rows[i][column];
      widths[column] = std::max(widths[column], report::text_width(cell));
      if (i > 0 && !cell.empty() && cell.find_first_of("0123456789") != 0 && cell[0] != '-')
        right[column] = false;
    }
  }
  for (const Cells& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - report::text_width(row[column]), ' ');
      line += right[column] ? padding + row[column] : row[column] + padding;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
  std::fflush(stdout);
}

}  // namespace stretto::cli
