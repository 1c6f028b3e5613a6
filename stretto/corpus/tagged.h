#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/corpus/encoding.h"
#include "stretto/corpus/tags.h"

namespace stretto::corpus {

struct TaggedSentence {
  std::vector<std::string> tokens;
  std::vector<std::string> tags;  // one per token; empty if the corpus has none
  int64_t line = 0;               // on which it begins, from 1
  int64_t document = 0;
};

struct TaggedCorpus {
  std::string name;     // the file, for messages
  std::string columns;  // what was read: "token = 1, tag = 2 of 2 columns"
  std::vector<TaggedSentence> sentences;
  bool has_tags = false;

  int64_t tokens() const;
  std::vector<std::string> tag_names() const;  // those that occur, sorted
  int64_t spans() const;
};

struct TaggedOptions {
  // A column's number from 1 in CoNLL files, a key in JSON Lines. Empty: the first column, and the last one if there are
  // several; "tokens" or "words", and "ner_tags", "tags", "labels" or "ner".
  std::string token = {};
  std::string tag = {};
  // For JSON Lines whose tags are numbers: their names by number.
  std::vector<std::string> tag_names = {};
  bool numbers_are_names = false;  // without tag_names: each number is its own name; else numbers are refused
  // Tags are converted to this scheme.
  std::optional<TagScheme> scheme = {};
  bool require_tags = false;
  Encoding encoding = Encoding::utf8;
  OptionNames names = {};
};

// Reads sentences of tokens and tags: .jsonl and .json as JSON Lines of two lists, as run_ner reads; any other extension as
// CoNLL (conll.h). Throws IoError, ConfigError for columns that the file does not have, DataError with file and line.
TaggedCorpus read_tagged(const std::filesystem::path& path, const TaggedOptions& options = {});
TaggedCorpus parse_tagged(std::string_view content, const std::string& name,
                          const TaggedOptions& options = {});

// A hash of all tokens and tags; not of file names and lines.
std::string content_hash(const TaggedCorpus& corpus);

}  // namespace stretto::corpus
