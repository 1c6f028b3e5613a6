#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

// A step of a decoder that consists of several steps; each takes the tokens that the previous step produced.
struct DecoderStep {
  enum class Kind {
    replace,  // replaces `from` by `to` in each token
    // replaces runs of tokens such as <0xE4> by their characters, and invalid bytes by U+FFFD each
    byte_fallback,
    fuse,   // joins all tokens into one
    strip,  // removes up to `start` and `stop` characters `from` from the ends of each token
  };
  Kind kind;
  std::string from = {}, to = {};
  size_t start = 0, stop = 0;
};

// The conversion of tokens to text: tokenizer.json's `decoder`.
struct Decoder {
  enum class Kind { join_by_space, wordpiece, byte_level, metaspace, steps, unavailable };
  Kind kind = Kind::join_by_space;
  std::string mark = {};  // wordpiece: the prefix of continuing pieces; metaspace: the replacement of a space
  bool cleanup = true;    // wordpiece: no spaces in front of punctuation, contractions closed
  bool drop_first_mark = true;  // metaspace: drop the first space, which is not part of the text
  std::vector<DecoderStep> steps = {};
  std::string type = {};  // unavailable: the name of the type, and the file
};

// Decodes tokens like Hugging Face's tokenizers; invalid UTF-8 becomes U+FFFD. Throws DataError for an
// unavailable decoder.
std::string decode_tokens(const Decoder& decoder, std::span<const std::string_view> tokens);

// Does the same while tokens arrive: the texts that add() and finish() return are, joined, that of all
// tokens. A text is returned as soon as no further token can change it: an incomplete character is kept back,
// and so is a run of tokens such as <0xE4>, which is valid or not as a whole. After fuse, steps other than
// strip at the start keep the whole text back. Takes time in proportion to the tokens.
class DecoderStream {
 public:
  explicit DecoderStream(const Decoder& decoder);  // `decoder` must outlive it

  std::string add(std::string_view token);
  std::string finish();  // no token follows

 private:
  // What a step has taken and not yet passed on, or may still strip.
  struct StepState {
    std::string held = {};
    size_t left_to_strip = 0;
  };
  std::string take(size_t bytes);
  void give(size_t step, std::string token, std::string& text);
  void end_run(size_t step, std::string& text);

  const Decoder* decoder_;
  std::string bytes_ = {};  // not returned yet; without steps
  bool is_first_ = true;
  std::vector<StepState> states_ = {};
  size_t fuse_;                    // the first fuse among the steps; their number if there is none
  bool needs_whole_text_ = false;  // the steps behind it
  bool has_ended_ = false;
};

}  // namespace stretto::text
