#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stretto::report {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending; values that are not finite are skipped
  int color = -1;           // index of the color; related curves share one. -1: the position in the chart
  bool evaluation = false;  // has one value per evaluation
  int run = 0;              // the index of its run
  std::string metric = {};
};

struct Chart {
  std::string title;
  std::string x_name = "step";
  std::vector<Curve> curves;
};

struct TextStyle {
  int columns = 80;
  int rows = 14;       // of the plot
  bool ascii = false;  // otherwise braille characters, with eight dots each
  bool color = false;  // ANSI colors, one per curve
};

// The chart for a terminal, with axes and a legend with the name and the last, smallest and largest value of
// each curve. No line is longer than style.columns. A chart without a finite point is the title and "no
// values".
std::string text_chart(const Chart& chart, const TextStyle& style);

// The chart as an SVG document of 800 x 400, legible on light and dark backgrounds. Texts are escaped.
std::string svg_chart(const Chart& chart);

// Escapes `text` for the content and attributes of XML and HTML.
std::string escape_markup(std::string_view text);

// The width of UTF-8 text in characters; and `text` truncated to a width, ending with "…" ("." for ascii).
size_t text_width(std::string_view text);
std::string shorten(const std::string& text, size_t width, bool ascii);

}  // namespace stretto::report
