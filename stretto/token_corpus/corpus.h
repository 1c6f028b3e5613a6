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

// A corpus written by `stretto data tokenize`: the tokens of its documents as one sequence, in mapped files.
// The time and memory of opening do not grow with its size: sizes are checked, checksums are not.
// Thread-safe.
class Corpus {
 public:
  // Throws IoError, and DataError for a folder that is not a corpus, is incomplete, or has missing or
  // truncated files.
  explicit Corpus(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  int64_t tokens() const { return manifest_.tokens; }
  int64_t documents() const { return manifest_.documents; }
  std::filesystem::path tokenizer() const { return folder_ / tokenizer_folder; }

  // Identifies the contents: corpora of equal tokens and documents have equal fingerprints.
  std::string fingerprint() const;

  // Throws ConfigError unless `tokenizer`, which was read from `where`, produces the ids of this corpus.
  void require_tokenizer(const text::Tokenizer& tokenizer, const std::string& where) const;

  // Appends tokens [begin, end) to `ids`. Throws DataError for an id that the tokenizer does not have.
  // REQUIRES: 0 <= begin <= end <= tokens().
  void read(int64_t begin, int64_t end, std::vector<int32_t>& ids) const;

  // The index of a document's first token; tokens() for document == documents(). REQUIRES: 0 <= document <=
  // documents().
  int64_t document_begin(int64_t document) const;

  // The document that contains a token. O(log documents). REQUIRES: 0 <= token < tokens().
  int64_t document_at(int64_t token) const;

  // Reads all files and verifies their checksums; calls progress(bytes) repeatedly. Throws DataError, which
  // names the file.
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
