#pragma once

#include <optional>

#include "stretto/token_corpus/encode_chunk.h"
#include "stretto/token_corpus/growing_file.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::token_corpus {

// Writes a corpus, chunk by chunk. After a crash at any moment it goes on where save() was called last.
class CorpusWriter {
 public:
  // In a folder with a manifest that is not complete: what was written behind its counts is cut off. Throws
  // IoError, and DataError where files are missing or damaged.
  CorpusWriter(std::filesystem::path folder, Manifest manifest);

  void append(const EncodedChunk& chunk);

  // All chunks so far will stay, whatever happens. Throws IoError.
  void save();

  // The same, and the corpus is complete.
  void finish();

  const Manifest& manifest() const { return manifest_; }

 private:
  void append_tokens(std::string_view bytes);
  void open_shard();

  std::filesystem::path folder_;
  Manifest manifest_;
  GrowingFile index_;
  int64_t last_end_;                  // of the documents in the index
  std::optional<GrowingFile> shard_;  // the last one, unless it is full
};

}  // namespace stretto::token_corpus
