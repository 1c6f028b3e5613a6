#include "stretto/token_corpus/tokenizer_identity.h"

#include <fmt/format.h>

#include "stretto/text/tokenizer.h"

namespace stretto::token_corpus {

TokenizerIdentity identity_of(const text::Tokenizer& tokenizer) {
  return {tokenizer.fingerprint(), tokenizer.hugging_face_class(), tokenizer.vocab_size()};
}

std::string describe(const TokenizerIdentity& tokenizer) {
  return fmt::format("{}, {} tokens, {}", tokenizer.kind, tokenizer.vocab_size,
                     tokenizer.fingerprint.substr(0, 8));
}

}  // namespace stretto::token_corpus
