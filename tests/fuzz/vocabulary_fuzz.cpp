#include "tests/fuzz/sound_encoding.h"

#include "stretto/base/files.h"
#include "stretto/text/tokenizer_files.h"

// Input: a vocab.txt, read as cased or uncased depending on the parity of its size; a tokenizer that loads
// must tokenize.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  return {"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nfilm\n\xe4\xb8\xad\n",
          "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nA\r\n",
          read_file(std::string(STRETTO_SOURCE_DIR) + "/tests/golden/tokenizer/uncased.txt")};
}

void run(const std::string& input) {
  const text::TokenizerOptions options{.lowercase = input.size() % 2 == 0};
  const text::Tokenizer tokenizer(
      text::parse_vocabulary(input, "vocab.txt", nlohmann::json::object(), "", options));
  const std::string text = "a film, \xf0\x9f\x98\x80 ab" + input.substr(0, 64);
  require_sound(tokenizer, tokenizer.encode(text), text.size());
}

}  // namespace stretto::fuzz
