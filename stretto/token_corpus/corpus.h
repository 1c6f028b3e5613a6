#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/files.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::token_corpus {

// A corpus that `stretto data tokenize` wrote: the tokens of its documents as one sequence, in mapped files.
// Opening takes no time and no memory that grows with its size; it checks sizes, not checksums. Thread-safe.
class Corpus {
 public:
  // Throws IoError, and DataError for a folder that is no corpus, is not complete, or whose files are missing
  // or cut short.
  explicit Corpus(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  int64_t tokens() const { return manifest_.tokens; }
  int64_t documents() const { return manifest_.documents; }
  std::filesystem::path tokenizer() const { return folder_ / tokenizer_folder; }

  // Names the contents: equal for corpora of equal tokens and documents.
  std::string fingerprint() const;

  // Throws ConfigError unless `tokenizer`, which was read from `where`, gives the ids of this corpus.
  void require_tokenizer(const text::Tokenizer& tokenizer, const std::string& where) const;

  // Appends the tokens [begin, end). Throws DataError for an id that the tokenizer does not have. REQUIRES: 0
  // <= begin <= end <= tokens().
  void read(int64_t begin, int64_t end, std::vector<int32_t>& ids) const;

  // The first token of a document; of document number documents(), tokens(). REQUIRES: 0 <= document <=
  // documents().
  int64_t document_begin(int64_t document) const;

  // The document that holds a token. O(log documents). REQUIRES: 0 <= token < tokens().
  int64_t document_at(int64_t token) const;

  // Reads all files and compares their checksums; progress(bytes) is called on the way. Throws DataError,
  // which names the file.
  void check(const std::function<void(int64_t bytes)>& progress) const;

 private:
  template <class Token>
  void append(size_t shard, int64_t begin, int64_t end, std::vector<int32_t>& ids) const;
  MappedFile open(const std::string& name, const CheckedFile& expected) const;

  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<MappedFile> shards_;
  MappedFile index_;
  std::span<const int64_t> document_ends_;
};

}  // namespace stretto::token_corpus
