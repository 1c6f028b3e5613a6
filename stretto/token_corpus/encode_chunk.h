#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stretto/base/option_names.h"
#include "stretto/text/id_encoder.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::token_corpus {

// The tokens of a chunk as they are written.
struct EncodedChunk {
  std::string bytes;  // of its tokens, little-endian
  int64_t tokens = 0;
  std::vector<int64_t>
      document_ends;  // of the documents that end in the chunk: their tokens end before these
  int64_t text_bytes = 0;
  int64_t empty_documents = 0;  // without a byte of text: they give no tokens
  Position end;                 // of the chunk
  int64_t file_bytes = 0;       // as in Chunk
};

// Encodes chunks, one after the other. For one thread.
class ChunkEncoder {
 public:
  // `around`: the ids in front of each document and behind it. `column`: as in DocumentOptions; `names`: of
  // "column". `tokenizer` and `files` must outlive it.
  ChunkEncoder(const text::Tokenizer& tokenizer, const text::TemplateIds& around, const std::string& column,
               const std::vector<std::filesystem::path>& files, const OptionNames& names = {});

  // Throws DataError with file and line for a line that is no JSON object with a text, and for bytes that are
  // not UTF-8 where the tokenizer cannot keep them.
  EncodedChunk encode(const Chunk& chunk);

 private:
  std::string place(const Chunk& chunk, size_t position) const;
  std::string_view text_of(const Chunk& chunk, const Piece& piece);
  [[noreturn]] void refuse_column(const nlohmann::json& object, const std::string& place) const;
  void require_utf8(const Chunk& chunk, const Piece& piece, std::string_view text) const;

  const text::Tokenizer& tokenizer_;
  text::IdEncoder encoder_;
  text::TemplateIds around_;
  std::string column_, column_option_;
  const std::vector<std::filesystem::path>& files_;
  std::string json_text_;
  std::vector<int32_t> ids_;
};

}  // namespace stretto::token_corpus
