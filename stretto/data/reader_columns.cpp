#include "stretto/data/reader_columns.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::data {
namespace {

// The names that GLUE's files and the data sets of the Hugging Face hub use, in the order of preference.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kUsualPairs{
    {{"sentence1", "sentence2"},
     {"premise", "hypothesis"},
     {"question1", "question2"},
     {"question", "sentence"},
     {"question", "passage"},
     {"question", "context"},
     {"text", "text_pair"},
     {"text1", "text2"},
     {"#1 String", "#2 String"},
     {"query", "document"}}};
constexpr std::array<std::string_view, 6> kUsualTexts{"sentence", "text",     "review",
                                                      "content",  "question", "query"};
constexpr std::array<std::string_view, 8> kUsualLabels{"label",        "labels", "gold_label", "sentiment",
                                                       "is_duplicate", "target", "class",      "Quality"};

bool is_usual_name(std::string_view name) {
  const auto holds = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return holds(kUsualTexts) || holds(kUsualLabels) ||
         std::any_of(kUsualPairs.begin(), kUsualPairs.end(),
                     [&](const auto& pair) { return name == pair.first || name == pair.second; });
}

std::optional<size_t> find_column(const std::vector<std::string>& columns, std::string_view name) {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

// A header names a column that is asked for or a usual one, and no header is a number as a label would be.
bool looks_like_header(const std::vector<std::string>& values, const Columns& asked) {
  const auto is_number = [](const std::string& value) { return parse_int(value).has_value(); };
  if (std::any_of(values.begin(), values.end(), is_number)) return false;
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    return !value.empty() &&
           (is_usual_name(value) || value == asked.text || value == asked.text_pair || value == asked.label);
  });
}

class ColumnChooser {
 public:
  ColumnChooser(const std::string& file, Layout layout) : file_(file), layout_(std::move(layout)) {}

  Layout choose(const ReadOptions& options) {
    choose_text(options.columns);
    choose_label(options);
    return std::move(layout_);
  }

 private:
  size_t asked_column(std::string_view setting, const std::string& name) const {
    const auto found = find_column(layout_.columns, name);
    if (!found) {
      throw ConfigError("{}: data.{}: there is no column \"{}\"; the columns are {}{}{}", file_, setting,
                        name, list_names(layout_.columns),
                        layout_.has_header ? "" : " (line 1 is not a header)",
                        did_you_mean(name, layout_.columns));
    }
    if (std::count(layout_.columns.begin(), layout_.columns.end(), name) > 1) {
      throw ConfigError("{}: data.{}: the column \"{}\" occurs twice in the header", file_, setting, name);
    }
    return *found;
  }

  void choose_text(const Columns& asked) {
    if (!asked.text.empty()) {
      layout_.text = asked_column("text", asked.text);
      if (!asked.text_pair.empty()) layout_.text_pair = asked_column("text_pair", asked.text_pair);
      return;
    }
    if (!asked.text_pair.empty()) {
      throw ConfigError("{}: data.text_pair names the column \"{}\" but data.text names none; set both",
                        file_, asked.text_pair);
    }
    if (layout_.has_header) {
      choose_usual_text();
    } else {
      choose_text_by_number(asked.label.empty());
    }
  }

  void choose_usual_text() {
    for (const auto& [text, pair] : kUsualPairs) {
      if (!find_column(layout_.columns, text) || !find_column(layout_.columns, pair)) continue;
      layout_.text = asked_column("text", std::string(text));
      layout_.text_pair = asked_column("text_pair", std::string(pair));
      return;
    }
    for (const std::string_view text : kUsualTexts) {
      if (!find_column(layout_.columns, text)) continue;
      layout_.text = asked_column("text", std::string(text));
      return;
    }
    throw ConfigError(
        "{}: no column has a usual name of a text; the columns are {}; set data.text to the one that holds it",
        file_, list_names(layout_.columns));
  }

  void choose_text_by_number(bool choose_the_label_too) {
    const size_t count = layout_.columns.size();
    if (count > 3) {
      throw ConfigError(
          "{}: no header line and {} columns; set data.text and data.label to their numbers (from 1)", file_,
          count);
    }
    layout_.text = 0;
    if (count == 3) layout_.text_pair = 1;
    if (count >= 2 && choose_the_label_too) layout_.label = count - 1;
  }

  void choose_label(const ReadOptions& options) {
    const std::string& asked = options.columns.label;
    if (!asked.empty()) {
      // Test files come without the column that the training file has; a slip of the pen is still refused.
      const bool may_lack_it = !options.require_labels && !closest(asked, layout_.columns);
      if (find_column(layout_.columns, asked) || !may_lack_it) layout_.label = asked_column("label", asked);
      return;
    }
    for (size_t i = 0; i < kUsualLabels.size() && layout_.has_header && !layout_.label; ++i) {
      const std::string label(kUsualLabels[i]);
      if (find_column(layout_.columns, label)) layout_.label = asked_column("label", label);
    }
    if (!layout_.label && options.require_labels) {
      throw ConfigError(
          "{}: no label column among {}; labels are needed here: set data.label to the column that holds them",
          file_, list_names(layout_.columns));
    }
  }

  const std::string& file_;
  Layout layout_;
};

}  // namespace

std::string list_names(const std::vector<std::string>& names) {
  constexpr size_t most_names = 12;
  constexpr size_t longest_name = 40;
  std::string list;
  for (size_t i = 0; i < names.size() && i < most_names; ++i) {
    if (i > 0) list += ", ";
    list.append(names[i], 0, longest_name);
    if (names[i].size() > longest_name) list += "...";
  }
  if (names.size() > most_names) list += fmt::format(", ... ({} in all)", names.size());
  return list.empty() ? "none" : list;
}

Layout choose_columns(const std::string& name, const Fields& first, bool always_has_header,
                      const ReadOptions& options) {
  Layout layout;
  for (const auto& value : first.values)
    layout.columns.emplace_back(always_has_header ? *value : trim(*value));
  layout.has_header = always_has_header || looks_like_header(layout.columns, options.columns);
  if (!layout.has_header) {
    for (size_t i = 0; i < layout.columns.size(); ++i) layout.columns[i] = std::to_string(i + 1);
  }
  return ColumnChooser(name, std::move(layout)).choose(options);
}

}  // namespace stretto::data
