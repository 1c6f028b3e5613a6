#pragma once

#include <cstdint>
#include <string>

#include "stretto/text/decoder.h"
#include "stretto/text/tokenizer.h"

namespace stretto::text {

// Decodes ids while they arrive, in time in proportion to their text: the texts that add() and finish()
// return are, joined, Tokenizer::decode of all ids. See DecoderStream for what is kept back.
class IdDecoder {
 public:
  // `tokenizer` must outlive it.
  explicit IdDecoder(const Tokenizer& tokenizer, const DecodeOptions& options = {});

  std::string add(int32_t id);  // throws DataError for an unavailable decoder
  std::string finish();         // no id follows

 private:
  const TokenizerStages* stages_;
  DecodeOptions options_;
  DecoderStream stream_;
};

}  // namespace stretto::text
