#include "stretto/text/id_decoder.h"

#include "stretto/text/tokenizer_stages.h"

namespace stretto::text {

IdDecoder::IdDecoder(const Tokenizer& tokenizer, const DecodeOptions& options)
    : stages_(tokenizer.stages_.get()), options_(options), stream_(stages_->decoder()) {}

std::string IdDecoder::add(int32_t id) {
  const auto token = stages_->decoded_token(id, options_);
  return token ? stream_.add(*token) : "";
}

std::string IdDecoder::finish() { return stream_.finish(); }

}  // namespace stretto::text
