#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "stretto/report/chart.h"
#include "stretto/report/chart_range.h"

namespace stretto::report {
namespace {

constexpr std::array marks = {'*', '+', 'o', 'x', '#', '@'};
constexpr std::array colors = {34, 33, 32, 31, 35, 36};  // ANSI foreground

// A grid of dots; a character shows 2 x 4 dots (braille) or one (ascii).
class Canvas {
 public:
  Canvas(int columns, int rows, bool ascii)
      : columns_(columns),
        rows_(rows),
        ascii_(ascii),
        dots_(static_cast<size_t>(columns * rows)),
        owner_(dots_.size(), -1) {}

  int width() const { return ascii_ ? columns_ : 2 * columns_; }
  int height() const { return ascii_ ? rows_ : 4 * rows_; }

  void set(int x, int y, int curve) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    const int column = ascii_ ? x : x / 2, row = ascii_ ? y : y / 4;
    const auto cell = static_cast<size_t>(row * columns_ + column);
    // The dots of a braille character are numbered 1 2 3 7 in the left column, 4 5 6 8 in the right one.
    constexpr uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    dots_[cell] |= ascii_ ? uint8_t{1} : bits[y % 4][x % 2];
    owner_[cell] = curve;
  }

  // Draws a line by Bresenham's algorithm.
  void line(int x0, int y0, int x1, int y1, int curve) {
    const int dx = std::abs(x1 - x0), dy = -std::abs(y1 - y0);
    const int step_x = x0 < x1 ? 1 : -1, step_y = y0 < y1 ? 1 : -1;
    for (int error = dx + dy;;) {
      set(x0, y0, curve);
      if (x0 == x1 && y0 == y1) return;
      const int doubled = 2 * error;
      if (doubled >= dy) error += dy, x0 += step_x;
      if (doubled <= dx) error += dx, y0 += step_y;
    }
  }

  std::string row(int row, bool color) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const auto cell = static_cast<size_t>(row * columns_ + column);
      const uint8_t dots = dots_[cell];
      if (dots == 0) {
        text += ' ';
        continue;
      }
      const auto curve = static_cast<size_t>(owner_[cell]);
      std::string character(1, marks[curve % marks.size()]);
      if (!ascii_)  // U+2800 + dots in UTF-8
        character = {'\xe2', static_cast<char>(0xa0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3f))};
      text += color ? fmt::format("\x1b[{}m{}\x1b[0m", colors[curve % colors.size()], character) : character;
    }
    const size_t end = text.find_last_not_of(' ');
    return end == std::string::npos ? "" : text.substr(0, end + 1);
  }

 private:
  int columns_, rows_;
  bool ascii_;
  std::vector<uint8_t> dots_;
  std::vector<int> owner_;
};

void draw(Canvas& canvas, const Curve& curve, int index, const Axis& x, const Axis& y) {
  int before_x = 0, before_y = 0;
  bool drawing = false;
  for (const auto& point : curve.points) {
    if (!is_finite(point)) {
      drawing = false;
      continue;
    }
    const int at_x = static_cast<int>(std::lround(x.position(point.first) * (canvas.width() - 1)));
    const int at_y = static_cast<int>(std::lround((1 - y.position(point.second)) * (canvas.height() - 1)));
    if (drawing) {
      canvas.line(before_x, before_y, at_x, at_y, index);
    } else {
      canvas.set(at_x, at_y, index);
    }
    before_x = at_x;
    before_y = at_y;
    drawing = true;
  }
}

// Returns the row of tick labels below the x axis. Omits labels that would overlap.
std::string label_row(const Axis& axis, int columns, const std::string& name) {
  std::string row(static_cast<size_t>(columns), ' ');
  const size_t name_begin = row.size() > name.size() ? row.size() - name.size() : 0;
  size_t free_from = 0;
  for (const double tick : axis.ticks) {
    const std::string label = tick_text(axis, tick);
    const auto middle = static_cast<int64_t>(std::lround(axis.position(tick) * (columns - 1)));
    const auto begin = static_cast<size_t>(std::max<int64_t>(0, middle - std::ssize(label) / 2));
    if (begin < free_from || begin + label.size() + 1 > name_begin) continue;
    row.replace(begin, label.size(), label);
    free_from = begin + label.size() + 1;
  }
  return row.replace(name_begin, name.size(), name);
}

std::string legend(const Chart& chart, const TextStyle& style) {
  std::string text;
  const auto room = static_cast<size_t>(style.columns);
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    const auto values = values_of(curve);
    const std::string numbers =
        values ? fmt::format("last {}  min {}  max {}", value_text(values->last),
                             value_text(values->range.low), value_text(values->range.high))
               : "no values";
    const auto color = static_cast<size_t>(color_of(chart, i));
    std::string sign = style.ascii ? std::string(1, marks[color % marks.size()]) : "⠒";
    if (style.color) sign = fmt::format("\x1b[{}m{}\x1b[0m", colors[color % colors.size()], sign);
    constexpr size_t margin = 6, shortest_name = 8;
    const size_t numbers_room = room - margin - std::min(shortest_name, text_width(curve.name));
    const std::string shown = numbers.size() > numbers_room ? numbers.substr(0, numbers.find("  ")) : numbers;
    text += fmt::format("  {} {}  {}\n", sign, shorten(curve.name, room - margin - shown.size(), style.ascii),
                        shown);
  }
  return text;
}

}  // namespace

size_t text_width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<uint8_t>(byte) & 0xc0) != 0x80; }));
}

std::string shorten(const std::string& text, size_t width, bool ascii) {
  if (text_width(text) <= width) return text;
  std::string cut;
  size_t characters = 0;
  for (const char byte : text) {
    characters += (static_cast<uint8_t>(byte) & 0xc0) != 0x80;
    if (characters >= width) break;
    cut += byte;
  }
  return cut + (ascii ? "." : "…");
}

std::string text_chart(const Chart& chart, const TextStyle& style) {
  const std::string title = shorten(chart.title, static_cast<size_t>(style.columns), style.ascii) + "\n";
  const auto range = range_of(chart);
  if (!range) return title + "  no values\n";
  const Axis y = make_axis(range->y.low, range->y.high, std::max(2, style.rows / 4));
  size_t label_width = 0;
  for (const double tick : y.ticks) label_width = std::max(label_width, tick_text(y, tick).size());
  const int columns = std::max(10, style.columns - static_cast<int>(label_width) - 3);
  Axis x = make_axis(range->x.low, range->x.high, std::max(2, columns / 12));
  x.low = range->x.low == range->x.high ? x.low : range->x.low;  // the curves fill the width
  x.high = range->x.low == range->x.high ? x.high : range->x.high;
  std::erase_if(x.ticks, [&](double tick) { return tick < x.low || tick > x.high; });
  Canvas canvas(columns, style.rows, style.ascii);
  for (size_t i = 0; i < chart.curves.size(); ++i) draw(canvas, chart.curves[i], color_of(chart, i), x, y);
  std::vector<std::string> labels(static_cast<size_t>(style.rows));
  for (const double tick : y.ticks)
    labels[static_cast<size_t>(std::lround((1 - y.position(tick)) * (style.rows - 1)))] = tick_text(y, tick);
  std::string text = title;
  for (int row = 0; row < style.rows; ++row) {
    const std::string& label = labels[static_cast<size_t>(row)];
    const char* const bar = style.ascii ? (label.empty() ? "|" : "+") : (label.empty() ? "│" : "┤");
    const std::string dots = canvas.row(row, style.color);
    text += fmt::format("{:>{}} {}{}\n", label, label_width, bar, dots);
  }
  std::string line;
  for (int i = 0; i < columns; ++i) line += style.ascii ? "-" : "─";
  text += fmt::format("{:>{}} {}{}\n", "", label_width, style.ascii ? "+" : "└", line);
  text += fmt::format("{:>{}}  {}\n", "", label_width, label_row(x, columns, chart.x_name));
  return text + legend(chart, style);
}

}  // namespace stretto::report
