#pragma once

#include <span>
#include <vector>

#include "stretto/text/tokenizer.h"

namespace stretto::text {

// Tokenizer::encode of each text, in order, on up to `threads` threads (0: all processors).
std::vector<Encoding> encode_batch(const Tokenizer& tokenizer, std::span<const Input> texts,
                                   const EncodeOptions& options = {}, int threads = 0);

}  // namespace stretto::text
