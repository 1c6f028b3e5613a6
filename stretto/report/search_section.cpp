#include "stretto/report/search_section.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stretto/base/strings.h"
#include "stretto/report/axis.h"
#include "stretto/report/chart.h"

namespace stretto::report {
namespace {

std::string cell(const std::string& text, bool is_number) {
  return fmt::format("<td{}>{}</td>", is_number ? " class=\"number\"" : "", escape_markup(text));
}

std::string table_of(const SearchResults& results) {
  std::string text =
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Trials\"><table><thead><tr><th scope=\"col\">trial</th>";
  for (const SearchedParameter& parameter : results.parameters)
    text += fmt::format("<th scope=\"col\"{}>{}</th>", parameter.is_number ? " class=\"number\"" : "",
                        escape_markup(parameter.name));
  text += fmt::format(
      "<th scope=\"col\" class=\"number\">{}</th><th scope=\"col\">state</th></tr></thead><tbody>\n",
      escape_markup(results.metric));
  for (const SearchedTrial& trial : results.trials) {
    text += "<tr>" + cell(trial.name, false);
    for (size_t i = 0; i < results.parameters.size(); ++i)
      text += cell(trial.values[i], results.parameters[i].is_number);
    text += cell(trial.score ? value_text(*trial.score) : "", true) + cell(trial.state, false) + "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

// A dot per trial.
Chart scores_over(const SearchResults& results, size_t parameter) {
  const SearchedParameter& searched = results.parameters[parameter];
  Chart chart{.title = fmt::format("{} over {}", results.metric, searched.name),
              .x_name = searched.is_log ? "log10 of " + searched.name : searched.name,
              .curves = {}};
  std::vector<std::pair<double, double>> points;
  for (const SearchedTrial& trial : results.trials) {
    const auto value = parse_double(trial.values[parameter]);
    if (value && trial.score)
      points.emplace_back(searched.is_log ? std::log10(*value) : *value, *trial.score);
  }
  std::ranges::sort(points);
  Curve dots{.name = results.metric, .points = {}};
  for (const auto& point : points) {
    dots.points.push_back(point);
    dots.points.emplace_back(point.first, NAN);  // so that points are not connected
  }
  chart.curves.push_back(std::move(dots));
  return chart;
}

}  // namespace

std::string search_section(const SearchResults& results) {
  std::string text = "<section><style>.dots svg path{stroke-width:7}</style><h2>Search</h2>\n" +
                     table_of(results) + "<div class=\"charts\">\n";
  for (size_t i = 0; i < results.parameters.size(); ++i) {
    if (results.parameters[i].is_number)
      text += fmt::format("<figure class=\"dots\">{}</figure>\n", svg_chart(scores_over(results, i)));
  }
  return text + "</div></section>\n";
}

}  // namespace stretto::report
