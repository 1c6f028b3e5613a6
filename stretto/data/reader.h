#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stretto/corpus/encoding.h"
#include "stretto/data/rows.h"

namespace stretto::data {

// Names of the columns to read, case-insensitive. An empty text or label selects a usual name that the file
// has (sentence, text, sentence1 + sentence2, premise + hypothesis, ...; label, ...; listed in
// reader_columns.cpp). In a file without a header line the columns are named "1", "2", "3", ...; by default,
// they are text | text, label | text, text_pair, label, depending on their number.
struct Columns {
  std::string text = {};
  std::string text_pair = {};
  std::string label = {};
};

struct ReadOptions {
  Columns columns = {};
  ProblemType problem = ProblemType::single_label_classification;
  // Multi-label: the separator of classes in a column of text; JSON Lines may have lists.
  std::string label_separator = ",";
  // The expected labels, such as those of the model or of the training file. nullptr: the labels in the file,
  // numbers ordered by value, other labels by their bytes.
  const LabelSet* labels = nullptr;
  // If false, a file without the label column, or with that column empty (or -1) in all rows, gives rows
  // without labels.
  bool require_labels = false;
  corpus::Encoding encoding = corpus::Encoding::utf8;
  OptionNames names = {};
};

// Reads a file of text classification rows. The extension determines the format:
//   .tsv .txt      tab-separated, like GLUE's files, without quoting; a header line is optional
//   .csv           comma-separated with the quoting of RFC 4180; a header line is optional
//   .jsonl .json   JSON Lines: one object per line
// A byte order mark and CR LF are accepted; blank lines are skipped. Throws IoError if the file cannot be
// read, ConfigError for missing columns, and DataError with file and line for malformed content, including a
// first line that is neither a known header nor like the other rows.
Table read_rows(const std::filesystem::path& path, const ReadOptions& options = {});

// Like read_rows, for content in memory. `name` is the file's name, for messages and for its extension.
Table parse_rows(std::string_view content, const std::string& name, const ReadOptions& options = {});

}  // namespace stretto::data
