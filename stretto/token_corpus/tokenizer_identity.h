#pragma once

#include <cstdint>
#include <string>

namespace stretto::text {
class Tokenizer;
}

namespace stretto::token_corpus {

// Identifies the tokenizer of a corpus, independently of its file format.
struct TokenizerIdentity {
  std::string fingerprint;  // Tokenizer::fingerprint()
  std::string kind;         // transformers' class, for messages
  int64_t vocab_size = 0;
};

// The identity of a tokenizer.
TokenizerIdentity identity_of(const text::Tokenizer& tokenizer);

// "GPT2Tokenizer, 50257 tokens, 0a1b2c3d"
std::string describe(const TokenizerIdentity& tokenizer);

}  // namespace stretto::token_corpus
