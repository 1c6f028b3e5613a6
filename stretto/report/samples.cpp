#include "stretto/report/samples.h"

#include <algorithm>
#include <deque>
#include <fstream>

#include "stretto/base/json.h"
#include "stretto/base/strings.h"

namespace stretto::report {
namespace {

constexpr size_t longest_text = 300;
constexpr int64_t most_lines = 1'000'000;

// Fills in the lines of the data file for samples without a text.
void read_lines(const std::filesystem::path& file, std::vector<Samples::Sample>& samples) {
  std::ifstream stream(file);
  std::string line;
  for (int64_t number = 1; number <= most_lines && std::getline(stream, line); ++number) {
    for (Samples::Sample& sample : samples) {
      if (sample.line == number && sample.text.empty()) sample.text = shorten(line, longest_text, false);
    }
  }
}

}  // namespace

Samples read_samples(const RunData& run, size_t most) {
  Samples samples;
  std::ifstream stream(run.folder / "predictions.jsonl");
  std::string line;
  std::vector<Samples::Sample> right;
  while (samples.count < most_lines && std::getline(stream, line)) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("label")) continue;
    ++samples.count;
    Samples::Sample sample;
    if (record.contains("line") && record["line"].is_number_integer()) sample.line = record["line"];
    for (const char* part : {"text", "text_pair"}) {
      const std::string text = shorten(text_in(record, part), longest_text, false);
      if (!text.empty()) sample.text += (sample.text.empty() ? "" : "\n") + text;
    }
    sample.label = text_in(record, "label");
    sample.gold = text_in(record, "gold");
    sample.score = number_in(record, "score").value_or(sample.score);
    if (sample.gold.empty()) continue;
    ++samples.labelled;
    samples.wrong += sample.wrong();
    if (sample.wrong()) {
      samples.shown.push_back(std::move(sample));
    } else if (right.size() < most) {
      right.push_back(std::move(sample));
    }
  }
  std::ranges::stable_sort(samples.shown, std::greater<>(), &Samples::Sample::score);
  constexpr size_t most_right = 5;
  if (samples.shown.size() > most) samples.shown.resize(most);
  for (size_t i = 0; i < std::min(right.size(), most_right); ++i)
    samples.shown.push_back(std::move(right[i]));
  if (const auto data = run.settings.find("data.test"); data != run.settings.end())
    read_lines(data->second, samples.shown);
  return samples;
}

std::vector<WrittenTexts> read_written(const RunData& run, size_t most) {
  std::deque<WrittenTexts> all;
  std::ifstream stream(run.folder / "texts.jsonl");
  std::string line;
  for (int64_t number = 0; number < most_lines && std::getline(stream, line); ++number) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !text_in(record, "name").starts_with("sample ")) continue;
    const auto step = static_cast<int64_t>(number_in(record, "step").value_or(0));
    if (all.empty() || all.front().step != step) all.push_front({step, {}});
    if (all.size() > most) all.pop_back();
    all.front().texts.push_back(shorten(text_in(record, "text"), longest_text, false));
  }
  return {all.begin(), all.end()};
}

std::string read_start(const RunData& run) {
  std::ifstream stream(run.folder / "logger_logs" / "training_0.log");
  std::string line, start;
  bool before_steps = false;
  while (std::getline(stream, line)) {
    if (line.find("======== start of rank") != std::string::npos) {
      start.clear();
      before_steps = true;
    } else if (line.find(" step ") != std::string::npos) {
      before_steps = false;
    }
    constexpr size_t time_width = 24;  // "2026-11-22 13:02:54.739 "
    constexpr size_t enough = 64 << 10;
    if (before_steps && start.size() < enough)
      start += (line.size() > time_width && line[4] == '-' ? line.substr(time_width) : line) + "\n";
  }
  return start;
}

}  // namespace stretto::report
