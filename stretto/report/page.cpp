#include "stretto/report/page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stretto/base/clock.h"
#include "stretto/base/strings.h"
#include "stretto/report/axis.h"
#include "stretto/report/page_parts.h"
#include "stretto/report/samples.h"

namespace stretto::report {
namespace {

constexpr size_t most_points = 1500;    // per curve
constexpr size_t most_samples = 25;     // per run
constexpr size_t most_evaluations = 5;  // whose texts are shown, per run

std::string esc(const std::string& text) { return escape_markup(text); }

// The points to draw: the smallest and the largest value of each of equal parts, so that spikes remain
// visible.
std::vector<size_t> thin(const std::vector<std::pair<double, double>>& points) {
  std::vector<size_t> kept;
  const size_t part = points.size() / (most_points / 2) + 1;
  if (points.size() <= most_points) {
    for (size_t i = 0; i < points.size(); ++i) kept.push_back(i);
    return kept;
  }
  for (size_t begin = 0; begin < points.size(); begin += part) {
    const auto first = points.begin() + static_cast<int64_t>(begin);
    const auto last = points.begin() + static_cast<int64_t>(std::min(begin + part, points.size()));
    const auto [low, high] =
        std::minmax_element(first, last, [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto place : {std::min(low, high), std::max(low, high)})
      kept.push_back(static_cast<size_t>(place - points.begin()));
    if (low == high) kept.pop_back();
  }
  return kept;
}

nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

Chart thinned(Chart chart) {
  for (Curve& curve : chart.curves) {
    std::vector<std::pair<double, double>> points;
    for (const size_t i : thin(curve.points)) points.push_back(curve.points[i]);
    curve.points = std::move(points);
  }
  return chart;
}

// The curves for the script. `chart` is over steps; values over epochs are read from the runs.
nlohmann::json data_of(const Chart& chart, const std::vector<RunData>& runs) {
  nlohmann::json series = nlohmann::json::array();
  for (const Curve& curve : chart.curves) {
    nlohmann::json steps = nlohmann::json::array(), epochs = steps, values = steps;
    const auto& points = runs[static_cast<size_t>(curve.run)].metrics.at(curve.metric);
    for (const size_t i : thin(curve.points)) {
      steps.push_back(points[i].step);
      epochs.push_back(points[i].epoch);
      values.push_back(number_or_null(points[i].value));
    }
    series.push_back({{"name", curve.name},
                      {"run", curve.run},
                      {"color", curve.color},
                      {"evaluation", curve.evaluation},
                      {"dash", curve.evaluation && runs.size() > 1 ? "5 3" : ""},
                      {"step", steps},
                      {"epoch", epochs},
                      {"values", values}});
  }
  return {{"title", chart.title}, {"series", series}};
}

// JSON for a script element, without "</script>" and "<!--".
std::string script_json(const nlohmann::json& json) {
  std::string text;
  for (const char letter : json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {
    if (letter == '<') {
      text += "\\u003c";
    } else {
      text += letter;
    }
  }
  return text;
}

std::string row(const std::string& name, const std::vector<std::string>& values, bool numeric) {
  if (std::ranges::all_of(values, &std::string::empty)) return "";
  std::string text = fmt::format("<tr><th scope=\"row\">{}</th>", esc(name));
  for (const std::string& value : values)
    text +=
        fmt::format("<td{}>{}</td>", numeric ? " class=\"number\"" : "", value.empty() ? "–" : esc(value));
  return text + "</tr>\n";
}

template <class ValueOf>
std::string row_of(const std::vector<RunData>& runs, const std::string& name, bool numeric,
                   const ValueOf& value_of) {
  std::vector<std::string> values;
  for (const RunData& run : runs) values.push_back(value_of(run));
  return row(name, values, numeric);
}

std::string table(const std::vector<RunData>& runs, const std::string& label, const std::string& rows,
                  bool numeric) {
  std::string text = fmt::format(
      "<div class=\"scroll{}\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table><thead><tr><td></td>",
      numeric ? " numbers" : "", esc(label));
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string swatch =
        runs.size() > 1 ? fmt::format("<span class=\"swatch\" style=\"background:var(--c{})\"></span>", i % 6)
                        : "";
    text += fmt::format("<th scope=\"col\"{}>{}{}</th>", numeric ? " class=\"number\"" : "", swatch,
                        esc(runs[i].name));
  }
  return text + "</tr></thead><tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string results_rows(const std::vector<RunData>& runs, nlohmann::json RunData::*results,
                         const char* prefix) {
  std::vector<std::string> names;
  for (const RunData& run : runs) {
    for (const auto& [name, value] : (run.*results).items()) {
      if (value.is_number() && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::string rows;
  for (const std::string& name : names)
    rows += row_of(runs, prefix + name, true,
                   [&](const RunData& run) { return value_text_in(run.*results, name); });
  return rows;
}

// "step 40, in epoch 2, by accuracy": other metrics may be better in another evaluation.
std::string best_model(const RunData& run) {
  const std::string epoch = value_text_in(run.summary, "best_epoch");
  if (epoch.empty()) return "";
  const std::string step = value_text_in(run.summary, "best_step");
  const auto monitor = run.settings.find("checkpoint.monitor");
  return fmt::format("{}epoch {}, by {}", step.empty() ? "" : fmt::format("step {}, in ", step), epoch,
                     monitor == run.settings.end() ? "loss" : monitor->second);
}

std::string smallest_evaluation_loss(const RunData& run) {
  const auto losses = run.metrics.find("eval_loss");
  if (losses == run.metrics.end()) return "";
  const RunData::Point* least = nullptr;
  for (const RunData::Point& point : losses->second)
    if (std::isfinite(point.value) && (least == nullptr || point.value < least->value)) least = &point;
  if (least == nullptr) return "";
  return fmt::format("{} (epoch {:.4g})", value_text(least->value), least->epoch);
}

std::string summary_section(const std::vector<RunData>& runs) {
  std::string rows =
      row_of(runs, "state", true, [](const RunData& run) { return std::string(state_name(run.state)); });
  rows += row_of(runs, "steps", true,
                 [](const RunData& run) { return value_text(static_cast<double>(run.steps())); });
  rows += row_of(runs, "ranks", true, [](const RunData& run) { return value_text_in(run.summary, "ranks"); });
  rows += row_of(runs, "time", true, [](const RunData& run) {
    const std::string seconds = value_text_in(run.summary, "seconds");
    return seconds.empty() ? "" : human_duration(run.summary["seconds"]);
  });
  rows += row_of(runs, "samples/s", true,
                 [](const RunData& run) { return value_text_in(run.summary, "samples_per_second"); });
  rows += row_of(runs, "last training loss", true, [](const RunData& run) {
    const auto loss = run.last("loss");
    return loss ? value_text(*loss) : "";
  });
  rows += row_of(runs, "best model", true, best_model);
  rows += results_rows(runs, &RunData::dev_results, "best model: ");
  rows += row_of(runs, "smallest evaluation loss", true, smallest_evaluation_loss);
  rows += results_rows(runs, &RunData::test_results, "test: ");
  return "<section><h2>Results</h2>\n" + table(runs, "Results", rows, true) + "</section>\n";
}

std::string controls(const std::vector<RunData>& runs) {
  std::string text =
      "<div class=\"bar\" hidden><fieldset><legend>over</legend><label><input type=\"radio\" name=\"by\" value=\"step\" "
      "checked>steps</label><label><input type=\"radio\" name=\"by\" value=\"epoch\">epochs</label></fieldset>"
      "<label><input type=\"checkbox\" id=\"log\">logarithmic</label>"
      "<label>smoothing <input type=\"range\" id=\"smooth\" min=\"0\" max=\"0.98\" step=\"0.02\" value=\"0\"></label>";
  if (runs.size() > 1) {
    text += "<fieldset><legend>runs</legend>";
    for (size_t i = 0; i < runs.size(); ++i) {
      text += fmt::format(
          "<label><input type=\"checkbox\" data-run=\"{0}\" checked><span class=\"swatch\" "
          "style=\"background:var(--c{1})\"></span>{2}</label>",
          i, i % 6, esc(runs[i].name));
    }
    text += "</fieldset>";
  }
  return text + "</div>\n";
}

std::string charts_section(const std::vector<Chart>& charts, const std::vector<RunData>& runs) {
  if (charts.empty()) return "<section><h2>Curves</h2><p>No values were recorded yet.</p></section>\n";
  std::string text = "<section><h2>Curves</h2>\n" + controls(runs) + "<div class=\"charts\">\n";
  for (size_t i = 0; i < charts.size(); ++i) {
    text += fmt::format(
        "<figure data-chart=\"{}\"><figcaption><h3>{}</h3></figcaption>{}<div class=\"values\" aria-live=\"polite\"></div></figure>\n",
        i, esc(charts[i].title), svg_chart(thinned(charts[i])));
  }
  return text + "</div></section>\n";
}

std::string settings_section(const std::vector<RunData>& runs) {
  std::string text = "<section><h2>Configuration</h2>\n";
  if (runs.size() > 1) {
    std::string rows;
    for (const auto& [name, values] : differences(runs)) rows += row(name, values, false);
    text += rows.empty() ? "<p>All settings are equal.</p>\n"
                         : "<p class=\"quiet\">Settings that differ:</p>\n" +
                               table(runs, "Settings that differ", rows, false);
  }
  for (const RunData& run : runs) {
    text += fmt::format("<details><summary>config.yaml of {}</summary><pre>{}</pre></details>\n",
                        esc(run.name), esc(run.config));
  }
  return text + "</section>\n";
}

std::string system_section(const std::vector<RunData>& runs) {
  std::string text;
  for (const RunData& run : runs) {
    const std::string start = read_start(run);
    if (!start.empty())
      text += fmt::format("<details{}><summary>{}</summary><pre>{}</pre></details>\n",
                          runs.size() == 1 ? " open" : "", esc("start of " + run.name), esc(start));
  }
  return text.empty() ? "" : "<section><h2>System and model</h2>\n" + text + "</section>\n";
}

std::string samples_of(const RunData& run) {
  const Samples samples = read_samples(run, most_samples);
  if (samples.count == 0) return "";
  std::string text = fmt::format("<h3>{}</h3>\n<p class=\"quiet\">{} of stretto test", esc(run.name),
                                 counted(samples.count, "prediction"));
  if (samples.labelled > 0)
    text +=
        fmt::format(", {} of {} wrong; the most confident mistakes first", samples.wrong, samples.labelled);
  text += "</p>\n";
  if (samples.shown.empty()) return text;
  text += fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Predictions of {}\"><table><thead><tr>"
      "<th scope=\"col\" class=\"number\">line</th><th scope=\"col\">text</th><th scope=\"col\">label</th>"
      "<th scope=\"col\">predicted</th><th scope=\"col\" class=\"number\">probability</th></tr></thead><tbody>\n",
      esc(run.name));
  for (const auto& sample : samples.shown) {
    text += fmt::format(
        "<tr><td class=\"number\">{}</td><td class=\"text\">{}</td><td>{}</td><td{}>{}{}</td><td class=\"number\">{:.3f}</td></tr>\n",
        sample.line, esc(sample.text), esc(sample.gold), sample.wrong() ? " class=\"wrong\"" : "",
        esc(sample.label), sample.wrong() ? " (wrong)" : "", sample.score);
  }
  return text + "</tbody></table></div>\n";
}

std::string samples_section(const std::vector<RunData>& runs) {
  std::string text;
  for (const RunData& run : runs) text += samples_of(run);
  return text.empty() ? "" : "<section><h2>Predictions</h2>\n" + text + "</section>\n";
}

std::string written_by(const RunData& run) {
  std::string rows;
  for (const WrittenTexts& written : read_written(run, most_evaluations)) {
    for (const std::string& text : written.texts)
      rows += fmt::format("<tr><td class=\"number\">{}</td><td class=\"text\">{}</td></tr>\n", written.step,
                          esc(text));
  }
  if (rows.empty()) return "";
  return fmt::format(
      "<h3>{}</h3>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Texts of {}\"><table><thead>"
      "<tr><th scope=\"col\" class=\"number\">step</th><th scope=\"col\">text</th></tr></thead><tbody>\n{}</tbody></table></div>\n",
      esc(run.name), esc(run.name), rows);
}

std::string written_section(const std::vector<RunData>& runs) {
  std::string text;
  for (const RunData& run : runs) text += written_by(run);
  return text.empty() ? "" : "<section><h2>Texts written at evaluations</h2>\n" + text + "</section>\n";
}

std::string title_of(const std::vector<RunData>& runs) {
  std::string names;
  for (const RunData& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  return shorten(names, 120, false);
}

std::string now_text() {
  const std::string now = utc_time(seconds_since_1970());
  return now.substr(0, now.rfind(':')) + " UTC";
}

}  // namespace

std::string html_page(const std::vector<RunData>& runs, const std::string& version,
                      const std::string& first_section) {
  const auto charts = page_charts(runs);
  nlohmann::json data = {{"charts", nlohmann::json::array()}};
  for (const Chart& chart : charts) data["charts"].push_back(data_of(chart, runs));
  const std::string title = title_of(runs);
  std::string folders;
  for (const RunData& run : runs) folders += (folders.empty() ? "" : ", ") + run.folder.string();
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
      "'unsafe-inline'; img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}: stretto report</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{}</style></head>\n<body>\n<header>"
      "<button class=\"theme\" type=\"button\" hidden>Light / dark</button><h1>{}</h1><p class=\"quiet\">{}</p></header>\n<main>\n",
      esc(title), page_style, esc(title), esc(folders));
  page += first_section + summary_section(runs) + charts_section(charts, runs) + written_section(runs) +
          samples_section(runs) + settings_section(runs) + system_section(runs);
  page += fmt::format("</main>\n<footer><p>Written by stretto {} on {}.</p></footer>\n", esc(version),
                      now_text());
  page += "<script type=\"application/json\" id=\"data\">" + script_json(data) + "</script>\n";
  if (!charts.empty()) page += fmt::format("<script>{}</script>\n", page_script);
  return page + "</body></html>\n";
}

}  // namespace stretto::report
