#pragma once

#include "stretto/text/added_tokens.h"
#include "stretto/text/model.h"
#include "stretto/text/normalizer.h"
#include "stretto/text/word_cache.h"

namespace stretto::text {

// The buffers and the cache that an IdEncoder keeps between texts.
struct IdEncoderState {
  std::vector<AddedTokenMatch> raw_matches, matches;
  NormalizedText normalized, part, buffer;
  std::vector<WordRange> words;
  std::vector<TokenPiece> pieces;
  WordCache cache;
};

}  // namespace stretto::text
