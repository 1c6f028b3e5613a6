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
  int64_t line = 0;               // its first line, from 1
  int64_t document = 0;
};

struct TaggedCorpus {
  std::string name;     // the file, for messages
  std::string columns;  // the columns that were read: "token = 1, tag = 2 of 2 columns"
  std::vector<TaggedSentence> sentences;
  bool has_tags = false;

  int64_t tokens() const;
  std::vector<std::string> tag_names() const;  // the tags that occur, sorted
  int64_t spans() const;
};

struct TaggedOptions {
  // A column's number from 1 in CoNLL files, a key in JSON Lines. Empty: the first column for tokens and the
  // last one, if there are several, for tags; or "tokens" or "words", and "ner_tags", "tags", "labels" or
  // "ner".
  std::string token = {};
  std::string tag = {};
  // The names of tags that are numbers in JSON Lines, by number.
  std::vector<std::string> tag_names = {};
  bool numbers_are_names = false;  // without tag_names: a number is used as its name; false: an error
  // Tags are converted to this scheme.
  std::optional<TagScheme> scheme = {};
  bool require_tags = false;
  Encoding encoding = Encoding::utf8;
  OptionNames names = {};
};

// Reads sentences of tokens and tags: .jsonl and .json as JSON Lines with two lists, like run_ner; any other
// extension as CoNLL (conll.h). Throws IoError, ConfigError for missing columns, DataError with file and
// line.
TaggedCorpus read_tagged(const std::filesystem::path& path, const TaggedOptions& options = {});
TaggedCorpus parse_tagged(std::string_view content, const std::string& name,
                          const TaggedOptions& options = {});

// A hash of all tokens and tags, independent of file names and lines.
std::string content_hash(const TaggedCorpus& corpus);

}  // namespace stretto::corpus
