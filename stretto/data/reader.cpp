#include "stretto/data/reader.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/corpus/reader_format.h"
#include "stretto/corpus/tsv.h"
#include "stretto/data/reader_columns.h"
#include "stretto/data/reader_labels.h"
#include "stretto/data/reader_targets.h"

namespace stretto::data {
namespace {

std::unique_ptr<corpus::FieldReader> make_reader(std::string_view text, const std::string& name) {
  if (auto reader = corpus::reader_by_extension(text, name)) return reader;
  if (!std::filesystem::path(name).has_extension()) return std::make_unique<corpus::TsvReader>(text, name);
  throw ConfigError(
      "{}: files ending in \"{}\" are not supported; supported are .tsv, .txt, .csv, .jsonl and .json (JSON Lines)",
      name, lower_case(std::filesystem::path(name).extension().string()));
}

std::unique_ptr<LabelColumn> make_label_column(const std::string& name, const Layout& layout,
                                               const ReadOptions& options) {
  switch (options.problem) {
    case ProblemType::regression:
      return std::make_unique<NumberReader>(name, options.names);
    case ProblemType::multi_label_classification:
      return std::make_unique<ClassListReader>(name, options.labels, options.label_separator);
    case ProblemType::single_label_classification:
      break;
  }
  return std::make_unique<LabelReader>(name, options.labels, layout.has_header, options.names);
}

// Converts records to rows by the layout.
class RowBuilder {
 public:
  RowBuilder(const std::string& name, const Layout& layout, const ReadOptions& options)
      : layout_(layout), names_(options.names), labels_(make_label_column(name, layout, options)) {
    table_.name = name;
    table_.problem = options.problem;
    table_.has_pairs = layout.text_pair.has_value();
  }

  void add(corpus::Fields& fields) {
    if (fields.values.size() != layout_.columns.size()) {
      throw DataError("{}:{}: {} column{}; {} has {} ({})", table_.name, fields.line, fields.values.size(),
                      fields.values.size() == 1 ? "" : "s",
                      layout_.has_header ? "the header" : "the first row", layout_.columns.size(),
                      list_names(layout_.columns));
    }
    TextRow row;
    row.line = fields.line;
    row.text = take(fields, layout_.text);
    if (layout_.text_pair) row.text_pair = take(fields, *layout_.text_pair);
    if (layout_.label) {
      const auto list = fields.lists.find(*layout_.label);
      if (table_.problem == ProblemType::multi_label_classification && list != fields.lists.end()) {
        labels_->add_list(list->second, fields.line);
      } else {
        refuse_nested(fields, *layout_.label, expected_label());
        labels_->add(fields.values[*layout_.label].value_or(""), fields.line);
      }
    }
    table_.rows.push_back(std::move(row));
  }

  Table finish(bool require_labels) {
    if (table_.rows.empty()) throw DataError("{}: no rows follow the header", table_.name);
    table_.columns = layout_text(layout_);
    labels_->finish(table_);
    if (require_labels && !table_.has_labels) {
      throw DataError(
          "{}:{}: no row has a label: the column \"{}\" is empty{} throughout; fill it in, or set {} to another",
          table_.name, table_.rows.front().line, layout_.columns[*layout_.label],
          table_.problem == ProblemType::single_label_classification ? " or -1" : "",
          names_("columns.label"));
    }
    return std::move(table_);
  }

 private:
  std::string take(corpus::Fields& fields, size_t column) const {
    refuse_nested(fields, column, "a plain text");
    auto& value = fields.values[column];
    if (!value) {
      throw DataError("{}:{}: \"{}\" is missing or null; every row needs it", table_.name, fields.line,
                      list_names({layout_.columns[column]}));
    }
    return *value;
  }

  const char* expected_label() const {
    switch (table_.problem) {
      case ProblemType::regression:
        return "one number";
      case ProblemType::multi_label_classification:
        return "a list of labels";
      case ProblemType::single_label_classification:
        break;
    }
    return "the label of one class";
  }

  void refuse_nested(const corpus::Fields& fields, size_t column, const char* expected) const {
    const auto nested = fields.nested.find(column);
    if (nested == fields.nested.end()) return;
    throw DataError("{}:{}: \"{}\" is {}; expected {} per row", table_.name, fields.line,
                    list_names({layout_.columns[column]}), nested->second, expected);
  }

  const Layout& layout_;
  const OptionNames& names_;
  std::unique_ptr<LabelColumn> labels_;
  Table table_;
};

}  // namespace

Table parse_rows(std::string_view content, const std::string& name, const ReadOptions& options) {
  std::string converted;
  const auto reader =
      make_reader(corpus::decode_text(content, options.encoding, name, converted, options.names), name);
  corpus::Fields fields;
  if (!reader->next(fields)) throw DataError("{}: the file is empty", name);
  const Layout layout = choose_columns(name, fields, reader->always_has_header(), options);

  RowBuilder rows(name, layout, options);
  if (!layout.has_header) rows.add(fields);
  while (reader->next(fields)) rows.add(fields);
  return rows.finish(options.require_labels);
}

Table read_rows(const std::filesystem::path& path, const ReadOptions& options) {
  const MappedFile file(path);
  return parse_rows(file.text(), path.string(), options);
}

}  // namespace stretto::data
