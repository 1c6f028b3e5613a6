#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::corpus {

// A sentence of a CoNLL file: the columns of each line.
struct ConllSentence {
  int64_t line = 0;      // line of its first token, from 1
  int64_t document = 0;  // index from 0; a line -DOCSTART- begins a new document
  std::vector<std::vector<std::string_view>> rows;
};

struct ConllFile {
  size_t columns = 0;
  std::vector<ConllSentence> sentences;
};

// Parses a CoNLL file: one token per line, sentences separated by blank lines. In a file that contains a tab,
// columns are separated by single tabs, and lines that begin with "# " and contain no tab are comments;
// otherwise columns are separated by spaces. All tokens have the same number of columns. `document_markers`:
// lines whose first column is -DOCSTART- separate documents. REQUIRES: `content` is UTF-8 (decode_text) and
// outlives the result. Throws DataError with `name` and the line.
ConllFile parse_conll(std::string_view content, const std::string& name, bool document_markers = true);

}  // namespace stretto::corpus
