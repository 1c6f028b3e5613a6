#include "stretto/report/top_screen.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/known_values.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/report/axis.h"

namespace stretto::report {
namespace {

// a run without a lock counts as ended after this many seconds without an update
constexpr double silence = 60;

double number(const nlohmann::json& object, const char* name) {
  return number_in(object, name).value_or(NAN);
}

const nlohmann::json& values_of(const nlohmann::json& status, const char* name) {
  static const nlohmann::json none = nlohmann::json::object();
  return status.contains(name) && status[name].is_object() ? status[name] : none;
}

std::string value_with_unit(const std::string& name, double value) {
  const KnownValue* known = find_known_value(name);
  return known != nullptr && known->text != nullptr ? known->text(value) : name + " " + value_text(value);
}

// Joins values to as many lines as needed.
std::string wrapped(const std::vector<std::string>& parts, size_t columns) {
  std::string lines, line;
  for (const std::string& part : parts) {
    if (!line.empty() && text_width(line) + 3 + text_width(part) > columns) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "  " : "   ") + part;
  }
  return line.empty() ? lines : lines + line + "\n";
}

std::vector<std::string> last_log_lines(const std::filesystem::path& folder, size_t count) {
  std::ifstream file(folder / "logger_logs" / "training_0.log", std::ios::binary);
  file.seekg(0, std::ios::end);
  constexpr std::streamoff enough = 16 << 10;
  file.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - enough));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    constexpr size_t date_width = 11;  // "2026-11-22 ": only the time is shown
    if (line.size() > date_width && line[4] == '-') line.erase(0, date_width);
    lines.push_back(line);
  }
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<int64_t>(count));
  return lines;
}

std::string state_of(const nlohmann::json& status, const std::filesystem::path& folder, double now) {
  const std::string state = text_in(status, "state");
  const double age = now - number(status, "updated");
  if (state != "training" && state != "waiting") return state;
  if (is_over(status, folder, now)) return fmt::format("ended unexpectedly, {} ago", human_duration(age));
  if (state == "waiting") return fmt::format("evaluating, saving or loading for {}", human_duration(age));
  return age > silence ? fmt::format("training, no update for {}", human_duration(age)) : state;
}

}  // namespace

nlohmann::json read_status(const std::filesystem::path& folder) {
  require_folder(folder);
  const std::filesystem::path path = folder / "progress.json";
  if (!std::filesystem::exists(path)) {
    throw ConfigError(
        "{} holds no progress.json; expected the output folder of a run, which writes it with its first step",
        folder.string());
  }
  const nlohmann::json status = read_json(path);
  if (!status.is_object()) throw DataError("{}: it is not a JSON object", path.string());
  return status;
}

bool is_over(const nlohmann::json& status, const std::filesystem::path& folder, double now) {
  const std::string state = text_in(status, "state");
  if (state != "training" && state != "waiting") return true;
  return now - number(status, "updated") > silence && !is_running(folder);
}

std::string top_line(const nlohmann::json& status, double now) {
  const double step = number(status, "step"), total = number(status, "total_steps"),
               left = number(status, "seconds_left");
  const auto& values = values_of(status, "values");
  std::string line = fmt::format("{} {:.0f}/{:.0f} ({:.0f} %)", text_in(status, "state"), step, total,
                                 total > 0 ? std::floor(step / total * 100) : 0);
  for (const char* name : {"loss", "samples_per_second"}) {
    if (std::isfinite(number(values, name))) line += ", " + value_with_unit(name, number(values, name));
  }
  for (const auto& [name, value] : values_of(status, "evaluation").items()) {
    if (value.is_number() && name != "step" && name != "loss") {
      line += fmt::format(", {} {}", name, value_text(value.get<double>()));
      break;
    }
  }
  if (std::isfinite(left) && step < total)
    line += fmt::format(", {} left", human_duration(std::max(0.0, left - (now - number(status, "updated")))));
  return line;
}

std::string top_screen(const std::filesystem::path& folder, const TextStyle& style, int rows, double now) {
  const nlohmann::json status = read_status(folder);
  const auto columns = static_cast<size_t>(style.columns);
  const double step = number(status, "step"), total = number(status, "total_steps");
  std::string screen =
      shorten(fmt::format("{}: {} (process {} on {}, {})", folder.string(), state_of(status, folder, now),
                          number(status, "pid"), text_in(status, "host"),
                          human_duration(now - number(status, "started"))),
              columns, style.ascii) +
      "\n";
  std::vector<std::string> parts = {fmt::format("step {:.0f}/{:.0f}", step, total)};
  if (const double left = number(status, "seconds_left"); left > 0)
    parts.push_back(human_duration(left) + " left");
  screen += bar_line("", total > 0 ? std::clamp(step / total, 0.0, 1.0) : 0, parts, style.columns + 1,
                     style.columns) +
            "\n";
  parts.clear();
  for (const auto& [name, value] : values_of(status, "values").items()) {
    if (value.is_number()) parts.push_back(value_with_unit(name, value.get<double>()));
  }
  screen += wrapped(parts, columns);
  parts.clear();
  const auto& evaluation = values_of(status, "evaluation");
  for (const auto& [name, value] : evaluation.items()) {
    if (value.is_number() && name != "step") parts.push_back(name + " " + value_text(value.get<double>()));
  }
  if (!parts.empty()) {
    screen += fmt::format("evaluation after step {:.0f}\n", number(evaluation, "step"));
    screen += wrapped(parts, columns);
  }
  if (is_run(folder)) {
    const RunData run = read_run(folder);
    TextStyle small = style;
    small.rows = std::clamp((rows - 16) / 2, 4, 12);
    for (const char* metric : {"loss", "samples_per_second"}) {
      const Chart chart = chart_of({run}, metric);
      if (!chart.curves.empty()) screen += text_chart(chart, small);
    }
  }
  auto used = static_cast<int>(std::ranges::count(screen, '\n'));
  if (rows - used >= 3) {
    screen += "log\n";
    for (const std::string& line : last_log_lines(folder, static_cast<size_t>(rows - used - 1)))
      screen += "  " + shorten(line, columns - 2, style.ascii) + "\n";
  }
  size_t end = 0;
  for (used = 0; used < rows && end < screen.size(); ++used) end = screen.find('\n', end) + 1;
  return screen.substr(0, end);
}

}  // namespace stretto::report
