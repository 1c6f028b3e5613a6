#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stretto::report {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending; values that are not finite are left out
  int color = -1;           // curves of one color belong together; -1: the position in the chart
  bool evaluation = false;  // a value per evaluation
  int run = 0;              // the position of its run, and the name of its values there
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
  bool ascii = false;  // else dots of braille characters, eight per character
  bool color = false;  // ANSI colors, one per curve
};

// The chart for a terminal, with axes, and a legend of each curve's name, last and smallest and largest value; no line is
// longer than style.columns. A chart without a finite point is the title and "no values".
std::string text_chart(const Chart& chart, const TextStyle& style);

// The chart as an SVG document of 800 x 400, legible on light and dark backgrounds. Texts are escaped.
std::string svg_chart(const Chart& chart);

// `text` for the content and attributes of XML and HTML.
std::string escape_markup(std::string_view text);

// The width of UTF-8 text in characters; `text` cut to a width, with "…" (or "." for ascii) as its last one.
size_t text_width(std::string_view text);
std::string shorten(const std::string& text, size_t width, bool ascii);

}  // namespace stretto::report
