#include "stretto/data/similar_labels.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "stretto/base/strings.h"
#include "stretto/data/reader_columns.h"
#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::data {
namespace {

void add_use(LabelUse& use, int64_t line) {
  if (use.count++ == 0) use.line = line;
}

// The label in lower case and without white space.
std::string without_case_and_blanks(const std::string& label) {
  std::string buffer, plain;
  const std::string_view valid = replace_invalid_utf8(label, buffer);
  for (size_t at = 0; at < valid.size();) {
    const char32_t c = text::next_code_point(valid, at);
    if (text::is_whitespace(c)) continue;
    const text::CodePoints lower = text::lower_case(c);
    for (int i = 0; i < lower.size; ++i) text::append_utf8(plain, lower.values[static_cast<size_t>(i)]);
  }
  return plain;
}

}  // namespace

std::map<std::string, LabelUse> label_uses(const Table& table) {
  std::map<std::string, LabelUse> uses;
  const auto& names = table.labels.names();
  for (const TextRow& row : table.rows) {
    if (row.label >= 0) add_use(uses[names[static_cast<size_t>(row.label)]], row.line);
    if (table.problem != ProblemType::multi_label_classification) continue;
    for (size_t i = 0; i < row.targets.size(); ++i)
      if (row.targets[i] > 0) add_use(uses[names[i]], row.line);
  }
  return uses;
}

std::map<std::string, LabelUse> label_uses(const corpus::TaggedCorpus& corpus) {
  std::map<std::string, LabelUse> uses;
  for (const auto& sentence : corpus.sentences)
    for (const std::string& tag : sentence.tags) add_use(uses[tag], sentence.line);
  return uses;
}

std::string describe_similar_labels(const std::string& file, const std::map<std::string, LabelUse>& uses) {
  using Entry = const std::pair<const std::string, LabelUse>*;
  std::map<std::string, std::vector<Entry>> by_plain_text;
  for (const auto& entry : uses) by_plain_text[without_case_and_blanks(entry.first)].push_back(&entry);
  std::string text;
  int64_t others = 0;
  for (auto& [plain, labels] : by_plain_text) {
    if (labels.size() < 2) continue;
    std::ranges::stable_sort(labels, {}, [](Entry entry) { return entry->second.line; });
    others += std::ssize(labels) - 1;
    if (!text.empty()) continue;
    const auto& [first, first_use] = *labels[0];
    const auto& [second, second_use] = *labels[1];
    text =
        fmt::format("{}:{}: the label \"{}\" ({}) differs from \"{}\" ({}, line {}) in case or blanks only",
                    file, second_use.line, list_names({second}), counted(second_use.count, "time"),
                    list_names({first}), counted(first_use.count, "time"), first_use.line);
  }
  if (text.empty()) return "";
  if (others > 1) text += fmt::format(", and so do {} more", others - 1);
  return text + "; they are trained as different classes: spell them alike if they are one";
}

}  // namespace stretto::data
