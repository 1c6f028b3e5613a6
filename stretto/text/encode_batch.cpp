#include "stretto/base/parallel.h"
#include "stretto/text/tokenizer.h"

namespace stretto::text {

std::vector<Encoding> encode_batch(const Tokenizer& tokenizer, std::span<const Input> texts,
                                   const EncodeOptions& options, int threads) {
  std::vector<Encoding> encodings(texts.size());
  run_in_parts(texts.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) encodings[i] = tokenizer.encode(texts[i], options);
  });
  return encodings;
}

}  // namespace stretto::text
