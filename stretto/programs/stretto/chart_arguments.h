#pragma once

#include <filesystem>

#include <CLI/CLI.hpp>

#include "stretto/report/chart.h"

namespace stretto::cli {

// The output of a chart: on the terminal, or as an SVG file.
struct ChartArguments {
  bool ascii = false;
  int rows = 14;
  std::filesystem::path svg;
};

// REQUIRES: `arguments` outlives the verb.
void add_chart_arguments(CLI::App& verb, ChartArguments& arguments);

// Prints the chart, fitted to the terminal's width (80 columns if standard output is no terminal), with
// colors on a terminal unless NO_COLOR is set; or writes the SVG file and prints its name.
void show_chart(const report::Chart& chart, const ChartArguments& arguments);

// The style of charts on standard output: width, ASCII or Unicode by the locale, colors.
report::TextStyle output_style();

}  // namespace stretto::cli
