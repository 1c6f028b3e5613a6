#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stretto/base/option_names.h"
#include "stretto/text/id_encoder.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/manifest.h"

namespace stretto::token_corpus {

// The tokens of a chunk in the format of the corpus files.
struct EncodedChunk {
  std::string bytes;  // the tokens, little-endian
  int64_t tokens = 0;
  std::vector<int64_t>
      document_ends;  // for each document that ends in the chunk, the number of tokens up to its end
  int64_t text_bytes = 0;
  int64_t empty_documents = 0;  // documents without a byte of text, which have no tokens
  Position end;                 // of the chunk
  int64_t file_bytes = 0;       // as in Chunk
};

// Encodes chunks. Each thread uses its own encoder. A document of JSON Lines whose column is a list of ids,
// such as the input_ids of Hugging Face's data sets, has these tokens, without those that "attention_mask"
// hides.
class ChunkEncoder {
 public:
  // `around`: the ids before and after each document. `column`: as in DocumentOptions; `names`: the name of
  // "column". `tokenizer` and `files` must outlive it.
  ChunkEncoder(const text::Tokenizer& tokenizer, const text::TemplateIds& around, const std::string& column,
               const std::vector<std::filesystem::path>& files, const OptionNames& names = {});

  // Throws DataError with file and line for a line that is not a JSON object with a text or ids of the
  // tokenizer, for ids whose "labels" are others, and for bytes that are not UTF-8 unless the tokenizer can
  // keep them.
  EncodedChunk encode(const Chunk& chunk);

 private:
  std::string place(const Chunk& chunk, size_t position) const;
  std::string_view text_of(const Chunk& chunk, const Piece& piece);
  void read_ids(const nlohmann::json& object, const nlohmann::json& list, const std::string& place);
  [[noreturn]] void refuse_column(const nlohmann::json& object, const std::string& place) const;
  void require_utf8(const Chunk& chunk, const Piece& piece, std::string_view text) const;

  const text::Tokenizer& tokenizer_;
  text::IdEncoder encoder_;
  text::TemplateIds around_;
  std::string column_, column_option_;
  const std::vector<std::filesystem::path>& files_;
  std::string json_text_;
  std::vector<int32_t> ids_;
  std::optional<std::vector<int32_t>> row_ids_;  // of the document, if it is a list of them
};

}  // namespace stretto::token_corpus
