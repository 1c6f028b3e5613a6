#include "stretto/data/reader_columns.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"

namespace stretto::data {
namespace {

// Column names of GLUE's files, of data sets of the Hugging Face hub and of spreadsheets, in the order of
// preference, in lower case.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> usual_pairs{
    {{"sentence1", "sentence2"},
     {"premise", "hypothesis"},
     {"question1", "question2"},
     {"question", "sentence"},
     {"question", "passage"},
     {"question", "context"},
     {"text", "text_pair"},
     {"text1", "text2"},
     {"#1 string", "#2 string"},
     {"query", "document"},
     {"query", "passage"}}};
constexpr std::array<std::string_view, 25> usual_texts{
    "sentence",    "text",       "review",      "content",      "question",  "query",    "message",
    "utterance",   "comment",    "tweet",       "post",         "body",      "document", "title",
    "headline",    "reviewtext", "review_text", "comment_text", "sentences", "texts",    "sms",
    "description", "statement",  "email",       "abstract"};
constexpr std::array<std::string_view, 18> usual_labels{
    "label",  "labels",   "gold_label", "sentiment", "is_duplicate", "target",
    "class",  "quality",  "category",   "intent",    "emotion",      "topic",
    "stance", "polarity", "rating",     "stars",     "label_text",   "categories"};

bool is_usual_name(std::string_view value) {
  const std::string name = lower_case(value);
  const auto holds = [&](const auto& names) { return std::ranges::find(names, name) != names.end(); };
  return holds(usual_texts) || holds(usual_labels) || std::ranges::any_of(usual_pairs, [&](const auto& pair) {
           return name == pair.first || name == pair.second;
         });
}

bool same_name(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

// The column with exactly this name, else the first one with this name in another case.
std::optional<size_t> find_column(const std::vector<std::string>& columns, std::string_view name) {
  auto found = std::ranges::find(columns, name);
  if (found == columns.end()) {
    found = std::ranges::find_if(columns, [&](const auto& column) { return same_name(column, name); });
  }
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Throws for a file with one column whose first line has several columns with another separator
// ("Text;Label"), if several are needed or one has a known name.
void refuse_other_separator(const std::string& file, const std::vector<std::string>& columns,
                            const ReadOptions& options) {
  if (columns.size() != 1) return;
  const bool is_csv = lower_case(file).ends_with(".csv");
  for (const auto& [separator, name] :
       {std::pair{';', "semicolons"}, {'\t', "tabs"}, {',', "commas"}, {'|', "bars"}}) {
    const auto parts = split(columns[0], separator);
    const auto is_name = [](std::string_view part) { return is_usual_name(unquoted(trim(part))); };
    if (parts.size() < 2 || !(options.require_labels || std::ranges::any_of(parts, is_name))) continue;
    throw DataError(
        "{}:1: one column ({}), which {} divide into {}; {} separate the columns of this kind of file. Save it as {}",
        file, list_names(columns), name, parts.size(), is_csv ? "commas" : "tabs",
        is_csv ? "comma-separated CSV, or with tabs as .tsv" : "tab-separated text, or with commas as .csv");
  }
}

// Whether a record looks like a header: it contains a requested or usual column name, and no number.
bool looks_like_header(const std::vector<std::string>& values, const Columns& asked) {
  const auto is_number = [](const std::string& value) { return parse_int(value).has_value(); };
  if (std::any_of(values.begin(), values.end(), is_number)) return false;
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    return !value.empty() && (is_usual_name(value) || same_name(value, asked.text) ||
                              same_name(value, asked.text_pair) || same_name(value, asked.label));
  });
}

class ColumnChooser {
 public:
  ColumnChooser(const std::string& file, Layout layout, const OptionNames& names)
      : file_(file), layout_(std::move(layout)), names_(names) {}

  Layout choose(const ReadOptions& options) {
    choose_text(options.columns);
    choose_label(options);
    return std::move(layout_);
  }

 private:
  size_t asked_column(const std::string& setting, const std::string& name) const {
    const auto found = find_column(layout_.columns, name);
    if (!found) {
      throw ConfigError("{}: {}: there is no column \"{}\"; the columns are {}{}{}", file_, names_(setting),
                        name, list_names(layout_.columns),
                        layout_.has_header ? "" : " (line 1 is not a header)",
                        did_you_mean(name, layout_.columns));
    }
    if (std::ranges::count(layout_.columns, layout_.columns[*found]) > 1) {
      throw ConfigError("{}: {}: the column \"{}\" occurs twice in the header", file_, names_(setting), name);
    }
    return *found;
  }

  void choose_text(const Columns& asked) {
    if (!asked.text.empty()) {
      layout_.text = asked_column("columns.text", asked.text);
      if (!asked.text_pair.empty()) layout_.text_pair = asked_column("columns.text_pair", asked.text_pair);
      return;
    }
    if (!asked.text_pair.empty()) {
      throw ConfigError("{}: {} names the column \"{}\" but {} names none; set both", file_,
                        names_("columns.text_pair"), asked.text_pair, names_("columns.text"));
    }
    if (layout_.has_header) {
      choose_usual_text();
    } else {
      choose_text_by_number(asked.label.empty());
    }
  }

  void choose_usual_text() {
    for (const auto& [text, pair] : usual_pairs) {
      if (!find_column(layout_.columns, text) || !find_column(layout_.columns, pair)) continue;
      layout_.text = asked_column("columns.text", std::string(text));
      layout_.text_pair = asked_column("columns.text_pair", std::string(pair));
      return;
    }
    for (const std::string_view text : usual_texts) {
      if (!find_column(layout_.columns, text)) continue;
      layout_.text = asked_column("columns.text", std::string(text));
      return;
    }
    throw ConfigError(
        "{}: no column has a usual name of a text; the columns are {}; set {} to the one that holds it",
        file_, list_names(layout_.columns), names_("columns.text"));
  }

  void choose_text_by_number(bool choose_the_label_too) {
    const size_t count = layout_.columns.size();
    if (count > 3) {
      throw ConfigError("{}: no header line and {} columns; set {} and {} to their numbers (from 1)", file_,
                        count, names_("columns.text"), names_("columns.label"));
    }
    layout_.text = 0;
    if (count == 3) layout_.text_pair = 1;
    if (count >= 2 && choose_the_label_too) layout_.label = count - 1;
  }

  void choose_label(const ReadOptions& options) {
    const std::string& asked = options.columns.label;
    if (!asked.empty()) {
      // Test files may lack the label column of the training file; a misspelt name is still an error.
      const bool may_lack_it = !options.require_labels && !closest(asked, layout_.columns);
      if (find_column(layout_.columns, asked) || !may_lack_it)
        layout_.label = asked_column("columns.label", asked);
      return;
    }
    for (size_t i = 0; i < usual_labels.size() && layout_.has_header && !layout_.label; ++i) {
      const std::string label(usual_labels[i]);
      if (find_column(layout_.columns, label)) layout_.label = asked_column("columns.label", label);
    }
    if (!layout_.label && options.require_labels) {
      throw ConfigError(
          "{}: no label column among {}; labels are required: set {} to the column that holds them", file_,
          list_names(layout_.columns), names_("columns.label"));
    }
  }

  const std::string& file_;
  Layout layout_;
  const OptionNames& names_;
};

}  // namespace

std::string how_to_name_columns(const OptionNames& names) {
  return fmt::format("name its columns with {} and {}", names("columns.text"), names("columns.label"));
}

std::string list_names(const std::vector<std::string>& names) {
  constexpr size_t most_names = 12;
  constexpr size_t longest_name = 40;
  std::string list;
  for (size_t i = 0; i < names.size() && i < most_names; ++i) {
    if (i > 0) list += ", ";
    list += cut_utf8(names[i], longest_name);
    if (names[i].size() > longest_name) list += "...";
  }
  if (names.size() > most_names) list += fmt::format(", ... ({} in all)", names.size());
  return list.empty() ? "none" : list;
}

std::string layout_text(const Layout& layout) {
  std::string text = fmt::format("text = {}", list_names({layout.columns[layout.text]}));
  if (layout.text_pair)
    text += fmt::format(", text_pair = {}", list_names({layout.columns[*layout.text_pair]}));
  if (layout.label) text += fmt::format(", label = {}", list_names({layout.columns[*layout.label]}));
  return text + (layout.has_header ? " (named columns)" : " (by number: no header line)");
}

Layout choose_columns(const std::string& name, const corpus::Fields& first, bool always_has_header,
                      const ReadOptions& options) {
  Layout layout;
  for (const auto& value : first.values)
    layout.columns.emplace_back(always_has_header ? *value : trim(*value));
  if (!always_has_header) refuse_other_separator(name, layout.columns, options);
  layout.has_header = always_has_header || looks_like_header(layout.columns, options.columns);
  if (!layout.has_header) {
    for (size_t i = 0; i < layout.columns.size(); ++i) layout.columns[i] = std::to_string(i + 1);
  }
  return ColumnChooser(name, std::move(layout), options.names).choose(options);
}

}  // namespace stretto::data
