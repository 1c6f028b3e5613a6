#include <array>

#include "tests/fuzz/sound_encoding.h"

#include "stretto/base/files.h"
#include "stretto/text/tokenizer_files.h"

// Input: a SentencePiece model file with its precompiled charsmap; a tokenizer that loads must tokenize.
// Seeds: the tokenizer of the golden tests.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  const std::string golden = std::string(STRETTO_SOURCE_DIR) + "/tests/golden/tokenizer/";
  return {read_file(golden + "xlm_roberta/sentencepiece.bpe.model"),
          read_file(golden + "llama2_model/tokenizer.model")};
}

void run(const std::string& input) {
  using Family = text::SentencePieceFamily;
  const Family family = std::array{Family::none, Family::xlm_roberta, Family::llama}[input.size() % 3];
  const text::Tokenizer tokenizer(
      text::parse_sentencepiece(input, "sentencepiece.bpe.model", family, nlohmann::json::object(), ""));
  const std::string text =
      "Hello  caf\xc3\xa9 e\xcc\x81 \xef\xac\x81lm \x01\xe3\x80\x80x" + input.substr(0, 200);
  const text::Encoding encoding = tokenizer.encode(text);
  require_sound(tokenizer, encoding, text.size());
  tokenizer.decode(encoding.ids);
}

}  // namespace stretto::fuzz
