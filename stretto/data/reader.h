#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stretto/corpus/encoding.h"
#include "stretto/data/rows.h"

namespace stretto::data {

// Names of the columns to read. An empty text or label means: the usual name that the file has (sentence,
// text, sentence1 + sentence2, premise + hypothesis, ...; label, ...; reader_columns.cpp lists them). Upper and lower
// case are alike. In a file without a header line the columns are called "1", "2", "3", ...; unless named, they are
// text | text, label | text, text_pair, label by their number.
struct Columns {
  std::string text = {};
  std::string text_pair = {};
  std::string label = {};
};

struct ReadOptions {
  Columns columns = {};
  LabelKind label_kind = LabelKind::one_class;
  // LabelKind::classes: what separates the classes in a column of text; JSON Lines may have lists.
  std::string label_separator = ",";
  // The labels to expect, such as those of the model or of the training file. nullptr: those found in the
  // file; numbers are ordered by value, other labels by their bytes.
  const LabelSet* labels = nullptr;
  // false: a file without the label column, or with that column empty (or -1) in all rows, gives rows without
  // labels.
  bool require_labels = false;
  corpus::Encoding encoding = corpus::Encoding::utf8;
  OptionNames names = {};
};

// Reads a file of text classification rows; the extension says how it is written:
//   .tsv .txt      tab-separated as GLUE has it: quotes are ordinary characters; a header line is optional
//   .csv           comma-separated with quoting as in RFC 4180; a header line is optional
//   .jsonl .json   JSON Lines: one object per line
// A byte order mark and CR LF are understood and blank lines skipped. Throws IoError when the file cannot be
// read, ConfigError for columns that it doesn't have, and DataError with file and line for what is malformed: a first
// line that is neither a known header nor like the other rows included.
Table read_rows(const std::filesystem::path& path, const ReadOptions& options = {});

// As read_rows for content that is in memory already; `name` stands for the file in messages and for its
// extension.
Table parse_rows(std::string_view content, const std::string& name, const ReadOptions& options = {});

}  // namespace stretto::data
