#include "tests/fuzz/mutate_json.h"
#include "tests/fuzz/sound_encoding.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/text/tokenizer_files.h"

// Input: a tokenizer.json; a tokenizer that loads must tokenize. Seeds: corpus/tokenizer_json.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  const std::string golden = std::string(STRETTO_SOURCE_DIR) + "/tests/golden/tokenizer/";
  return {R"({"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
{"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
{"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
{"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
"pre_tokenizer": {"type": "BertPreTokenizer"},
"post_processor": {"type": "TemplateProcessing",
"single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
"pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
"special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
"vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "##b": 5, "film": 6}}})",
          read_file(golden + "gpt2/tokenizer.json"), read_file(golden + "unigram/tokenizer.json"),
          read_file(golden + "added.json"), read_file(golden + "options.json")};
}

std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  return mutate_json(input, random);
}

void run(const std::string& input) {
  const text::Tokenizer tokenizer(text::parse_tokenizer_json(
      parse_json(input, "tokenizer.json"), "tokenizer.json", nlohmann::json::object(), "", {}));
  const std::string text = "a film, \xf0\x9f\x98\x80 ab" + input.substr(0, 64);
  require_sound(tokenizer, tokenizer.encode(text), text.size());
  const text::Encoding encoding = tokenizer.encode_pair(text, input.substr(0, 64));
  require_sound(tokenizer, encoding, text.size());
  try {
    tokenizer.decode(encoding.ids);
  } catch (const Error&) {  // a decoder that is not available does not prevent encoding
  }
}

}  // namespace stretto::fuzz
