#include "tests/fuzz/sound_encoding.h"

#include "stretto/base/files.h"
#include "stretto/text/tokenizer_files.h"

// A SentencePiece model file with its precompiled charsmap; a tokenizer that loads must tokenize. Seeds: the
// tokenizer of the golden tests.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  return {read_file(std::string(STRETTO_SOURCE_DIR) +
                    "/tests/golden/tokenizer/xlm_roberta/sentencepiece.bpe.model")};
}

void run(const std::string& input) {
  const bool fairseq = input.size() % 2 == 0;
  const text::Tokenizer tokenizer(
      text::parse_sentencepiece(input, "sentencepiece.bpe.model", fairseq, nlohmann::json::object(), ""));
  const std::string text =
      "Hello  caf\xc3\xa9 e\xcc\x81 \xef\xac\x81lm \x01\xe3\x80\x80x" + input.substr(0, 200);
  const text::Encoding encoding = tokenizer.encode(text);
  require_sound(tokenizer, encoding, text.size());
  tokenizer.decode(encoding.ids);
}

}  // namespace stretto::fuzz
