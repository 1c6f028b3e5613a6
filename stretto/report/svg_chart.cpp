#include <array>
#include <utility>

#include <fmt/format.h>

#include "stretto/report/chart.h"
#include "stretto/report/chart_range.h"

namespace stretto::report {
namespace {

constexpr double width = 800, height = 400;
constexpr double left = 72, right = 16, top = 40, bottom = 44;
constexpr double legend_row = 18;

// Colors that color-blind readers can distinguish (Okabe and Ito, 2008) on both backgrounds.
constexpr std::array palette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
constexpr std::array dashes = {"", "6 3", "2 3"};

struct Frame {
  Axis x, y;
  double plot_bottom;

  double at_x(double value) const { return left + x.position(value) * (width - left - right); }
  double at_y(double value) const { return plot_bottom - y.position(value) * (plot_bottom - top); }
};

std::string grid(const Frame& frame, const std::string& x_name) {
  std::string text;
  for (const double tick : frame.y.ticks) {
    text += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                        left, width - right, frame.at_y(tick), frame.at_y(tick));
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 8,
                        frame.at_y(tick) + 4, tick_text(frame.y, tick));
  }
  for (const double tick : frame.x.ticks) {
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                        frame.at_x(tick), frame.plot_bottom + 18, tick_text(frame.x, tick));
  }
  return text + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", width - right,
                            frame.plot_bottom + 34, escape_markup(x_name));
}

// The points of a curve as path data, interrupted where values are missing. A single point is a dot.
std::string path_of(const Curve& curve, const Frame& frame) {
  std::string path;
  int drawn = 0;  // points since the last interruption
  const auto interrupt = [&] {
    if (std::exchange(drawn, 0) == 1) path += "h0.1";
  };
  for (const auto& point : curve.points) {
    if (!is_finite(point)) {
      interrupt();
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", drawn > 0 ? "L" : "M", frame.at_x(point.first),
                        frame.at_y(point.second));
    ++drawn;
  }
  interrupt();
  return path;
}

std::string style_of(size_t curve) {
  const char* const dash = dashes[curve / palette.size() % dashes.size()];
  return fmt::format("stroke=\"{}\"{}", palette[curve % palette.size()],
                     *dash == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash));
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        // XML has no other control characters.
        if (static_cast<uint8_t>(letter) < 0x20 && letter != '\n' && letter != '\t') {
          escaped += "\xef\xbf\xbd";
        } else {
          escaped += letter;
        }
    }
  }
  return escaped;
}

std::string svg_chart(const Chart& chart) {
  const auto legend_height = legend_row * static_cast<double>(chart.curves.size());
  const double whole = height + legend_height;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
      width, whole, escape_markup(chart.title));
  text +=
      "<style>svg{font:12px system-ui,sans-serif}text{fill:#333}.grid{stroke:#8884}path{fill:none;stroke-width:1.8;"
      "stroke-linejoin:round;stroke-linecap:round}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>\n";
  text += fmt::format(
      "<title>{0}</title>\n<text x=\"{1}\" y=\"22\" font-size=\"15\" font-weight=\"600\">{0}</text>\n",
      escape_markup(chart.title), left);
  const auto range = range_of(chart);
  if (!range) return text + fmt::format("<text x=\"{}\" y=\"{}\">no values</text>\n</svg>\n", left, top + 30);
  Frame frame{make_axis(range->x.low, range->x.high, 8), make_axis(range->y.low, range->y.high, 5),
              height - bottom};
  if (range->x.low < range->x.high) {
    frame.x.low = range->x.low;
    frame.x.high = range->x.high;
    std::erase_if(frame.x.ticks, [&](double tick) { return tick < frame.x.low || tick > frame.x.high; });
  }
  text += grid(frame, chart.x_name);
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    const auto values = values_of(curve);
    if (values)
      text += fmt::format("<path {} d=\"{}\"/>\n", style_of(static_cast<size_t>(color_of(chart, i))),
                          path_of(curve, frame));
    const double y = height + legend_row * static_cast<double>(i);
    text += fmt::format("<path {} d=\"M{:.1f} {:.1f}h24\"/>",
                        style_of(static_cast<size_t>(color_of(chart, i))), left, y - 4);
    text +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}{}</text>\n", left + 32, y, escape_markup(curve.name),
                    values ? fmt::format(": last {}, min {}, max {}", value_text(values->last),
                                         value_text(values->range.low), value_text(values->range.high))
                           : ": no values");
  }
  return text + "</svg>\n";
}

}  // namespace stretto::report
