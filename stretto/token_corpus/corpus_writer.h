#pragma once

#include <optional>

#include "stretto/token_corpus/encode_chunk.h"
#include "stretto/token_corpus/growing_file.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::token_corpus {

// Writes a corpus, chunk by chunk. After a crash, writing continues from the last save().
class CorpusWriter {
 public:
  // Opens a folder with an incomplete manifest; data beyond the manifest's counts are removed. Throws
  // IoError, and DataError if files are missing or damaged.
  CorpusWriter(std::filesystem::path folder, Manifest manifest);

  void append(const EncodedChunk& chunk);

  // Makes all chunks so far durable. Throws IoError.
  void save();

  // Makes all chunks durable and marks the corpus as complete.
  void finish();

  const Manifest& manifest() const { return manifest_; }

 private:
  void append_tokens(std::string_view bytes);
  void open_shard();

  std::filesystem::path folder_;
  Manifest manifest_;
  GrowingFile index_;
  int64_t last_end_;                  // of the documents in the index
  std::optional<GrowingFile> shard_;  // the last shard, unless it is full
};

}  // namespace stretto::token_corpus
