#pragma once

#include <functional>
#include <span>
#include <vector>

#include "stretto/text/tokenizer.h"

namespace stretto::text {

// Calls run(begin, end) for parts of [0, count) on up to `threads` threads (0: as many as processors that this process may use),
// the calling one included, until all is done. Throws what the part with the lowest begin has thrown.
void run_in_parts(size_t count, int threads, const std::function<void(size_t, size_t)>& run);

// Tokenizer::encode of each text, in order, on up to `threads` threads (0: all processors).
std::vector<Encoding> encode_batch(const Tokenizer& tokenizer, std::span<const Input> texts,
                                   const EncodeOptions& options = {}, int threads = 0);

// Tokenizer::encode_pair of first[i] and second[i]. REQUIRES: equal sizes.
std::vector<Encoding> encode_pair_batch(const Tokenizer& tokenizer, std::span<const Input> first,
                                        std::span<const Input> second, const EncodeOptions& options = {},
                                        int threads = 0);

}  // namespace stretto::text
