#include "stretto/metrics/class_report.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "stretto/metrics/ratio.h"
#include "stretto/text/utf8.h"

namespace stretto::metrics {
namespace {

constexpr size_t most_rows = 30, most_columns = 7, label_width = 24;

// `label` padded or truncated to `width` columns.
std::string fitted(const std::string& label, size_t width, bool left) {
  std::string buffer;
  const std::string_view valid = text::replace_invalid_utf8(label, buffer);
  std::string shown;
  size_t count = 0;
  const bool cut = text::count_code_points(valid) > width;
  for (size_t at = 0; at < valid.size() && count < width - (cut ? 1 : 0); ++count) {
    const size_t begin = at;
    const char32_t c = text::next_code_point(valid, at);
    shown += c < ' ' || c == 0x7F ? " " : valid.substr(begin, at - begin);
  }
  if (cut) {
    shown += '~';
    ++count;
  }
  const std::string space(width - count, ' ');
  return left ? shown + space : space + shown;
}

// The `most` labels with the largest support, in the order of the labels.
template <class Support>
std::vector<size_t> most_frequent(size_t labels, size_t most, const Support& support) {
  std::vector<size_t> chosen(labels);
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  if (labels <= most) return chosen;
  std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return support(a) > support(b); });
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

ClassScores class_scores(const std::string& label, int64_t correct, int64_t predicted, int64_t gold) {
  return {label, ratio(correct, predicted), ratio(correct, gold), ratio(2 * correct, predicted + gold), gold};
}

std::vector<ClassScores> class_scores(const Confusion& confusion, const std::vector<std::string>& labels) {
  std::vector<ClassScores> scores;
  for (int64_t i = 0; i < confusion.num_labels(); ++i) {
    scores.push_back(class_scores(labels.at(static_cast<size_t>(i)), confusion.count(i, i),
                                  confusion.predicted_count(i), confusion.gold_count(i)));
  }
  return scores;
}

nlohmann::ordered_json class_scores_json(const std::vector<ClassScores>& scores) {
  auto json = nlohmann::ordered_json::object();
  for (const ClassScores& one : scores) {
    json[one.label] = {
        {"precision", one.precision}, {"recall", one.recall}, {"f1", one.f1}, {"support", one.support}};
  }
  return json;
}

nlohmann::ordered_json confusion_json(const Confusion& confusion, const std::vector<std::string>& labels) {
  auto counts = nlohmann::ordered_json::array();
  for (int64_t gold = 0; gold < confusion.num_labels(); ++gold) {
    auto row = nlohmann::ordered_json::array();
    for (int64_t predicted = 0; predicted < confusion.num_labels(); ++predicted)
      row.push_back(confusion.count(gold, predicted));
    counts.push_back(std::move(row));
  }
  return {{"labels", labels}, {"counts", std::move(counts)}};
}

std::string class_scores_table(const std::vector<ClassScores>& scores) {
  std::string text = fmt::format("{:<{}}  precision    recall        f1   support\n", "class", label_width);
  for (const size_t i :
       most_frequent(scores.size(), most_rows, [&](size_t label) { return scores[label].support; })) {
    const ClassScores& one = scores[i];
    text += fmt::format("{}  {:>9.4f} {:>9.4f} {:>9.4f} {:>9}\n", fitted(one.label, label_width, true),
                        one.precision, one.recall, one.f1, one.support);
  }
  if (scores.size() > most_rows)
    text += fmt::format("and {} classes with less support\n", scores.size() - most_rows);
  return text;
}

std::string confusion_table(const Confusion& confusion, const std::vector<std::string>& labels) {
  constexpr size_t column = 7, row_label = 22;
  const auto shown = most_frequent(labels.size(), most_columns, [&](size_t label) {
    return confusion.gold_count(static_cast<int64_t>(label));
  });
  std::string text = fitted("gold \\ predicted", row_label, true);
  for (const size_t predicted : shown) text += " " + fitted(labels[predicted], column, false);
  text += '\n';
  for (const size_t gold : shown) {
    text += fitted(labels[gold], row_label, true);
    for (const size_t predicted : shown) {
      text += fmt::format(
          " {:>{}}", confusion.count(static_cast<int64_t>(gold), static_cast<int64_t>(predicted)), column);
    }
    text += '\n';
  }
  if (labels.size() > shown.size())
    text += fmt::format("and {} classes with fewer samples\n", labels.size() - shown.size());
  return text;
}

}  // namespace stretto::metrics
