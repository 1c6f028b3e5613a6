#include "tests/messages/mistakes.h"

#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/text/tokenizer.h"

namespace stretto {
namespace {

using nlohmann::json;
using text::Tokenizer;

json small_wordpiece() {
  return json::parse(R"({
    "added_tokens": [{"id": 1, "content": "[SEP]", "special": true}],
    "normalizer": {"type": "BertNormalizer"},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 2]},
    "model": {"type": "WordPiece", "unk_token": "[UNK]",
              "vocab": {"[UNK]": 0, "[SEP]": 1, "[CLS]": 2, "the": 3, "map": 4}}
  })");
}

json small_bpe() {
  return json::parse(R"({
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b"], "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4}}
  })");
}

// Returns the file with one value replaced.
std::function<void()> changed(json file, const char* pointer, json value) {
  file[json::json_pointer(pointer)] = std::move(value);
  return [file = std::move(file)] {
    write_file_atomic("tokenizer.json", file.dump());
    Tokenizer::load("tokenizer.json");
  };
}

void add_json(Mistakes& all) {
  const auto wordpiece = [&](const char* name, const char* pointer, json value) {
    all.push_back(
        {std::string("tokenizer.json: ") + name, changed(small_wordpiece(), pointer, std::move(value))});
  };
  wordpiece("no model", "", json::object());
  wordpiece("a list", "", json::array());
  wordpiece("a vocabulary without [UNK]", "/model/vocab", {{"a", 0}});
  wordpiece("a vocabulary that is a number", "/model/vocab", 7);
  wordpiece("an id that is too large", "/model/vocab/the", 2000000000);
  wordpiece("an id that is a fraction", "/model/vocab/the", 1.5);
  wordpiece("an id that is negative", "/model/vocab/the", -3);
  wordpiece("an id of two tokens", "/model/vocab/the", 4);
  wordpiece("a token of a MiB", "/model/vocab", {{"[UNK]", 0}, {std::string(1 << 20, 'x'), 6}});
  wordpiece("an unknown model", "/model/type", "CharLevel");
  wordpiece("an unknown normalizer", "/normalizer/type", "Upper");
  wordpiece("an unknown pre-tokenizer", "/pre_tokenizer/type", "Digits");
  wordpiece("no pre-tokenizer", "/pre_tokenizer", nullptr);
  wordpiece("an unknown post-processor", "/post_processor/type", "Other");
  wordpiece("a post-processor with half a token", "/post_processor/sep", json::array({"[SEP]"}));
  wordpiece("a post-processor with an unknown id", "/post_processor/sep/1", 6);
  wordpiece("an added token that is a number", "/added_tokens/0/content", 1);
  wordpiece("an unknown side", "/truncation", {{"direction", "Up"}, {"max_length", 3}});
  wordpiece("an unknown way to truncate", "/truncation", {{"strategy", "Middle"}, {"max_length", 3}});
  wordpiece("a negative length", "/truncation", {{"max_length", -1}});
  const auto templates = [](const char* single, const char* pair) {
    return json{{"type", "TemplateProcessing"},
                {"single", json::parse(single)},
                {"pair", json::parse(pair)},
                {"special_tokens", json::object()}};
  };
  const char* first = R"([{"Sequence": {"id": "A", "type_id": 0}}])";
  wordpiece("a template of another sequence", "/post_processor",
            templates(R"([{"Sequence": {"id": "B", "type_id": 0}}])", "[]"));
  wordpiece("a template without its sequence", "/post_processor", templates(first, first));
  wordpiece("a template of an unknown token", "/post_processor",
            templates(R"([{"SpecialToken": {"id": "[X]", "type_id": 0}}])", "[]"));
  const auto bpe = [&](const char* name, const char* pointer, json value) {
    all.push_back(
        {std::string("tokenizer.json, BPE: ") + name, changed(small_bpe(), pointer, std::move(value))});
  };
  bpe("a merge of unknown tokens", "/model/merges/0", "a x");
  bpe("a merge to an unknown token", "/model/merges/0", "b a");
  bpe("a merge of one token", "/model/merges/0", "ab");
  bpe("dropout", "/model/dropout", 0.1);
  bpe("another regular expression", "/pre_tokenizer/use_regex", false);
  bpe("a pre-tokenizer of another model", "/pre_tokenizer/type", "BertPreTokenizer");
  const json unigram = json::parse(R"({
    "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA*"},
    "pre_tokenizer": {"type": "Metaspace"},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0]]}
  })");
  all.push_back({"tokenizer.json, Unigram: not base 64", changed(unigram, "/version", "1.0")});
  all.push_back({"tokenizer.json, Unigram: no charsmap",
                 changed(unigram, "/normalizer/precompiled_charsmap", "/////w==")});
}

}  // namespace

void add_tokenizers(Mistakes& all) {
  using Files = std::vector<std::pair<std::string, std::string>>;
  const auto folder = [&](const char* name, const Files& files) {
    all.push_back({name, [=] {
                     for (const auto& [file, content] : files) write_file_atomic(file, content);
                     Tokenizer::load(std::filesystem::path("."));
                   }});
  };
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n",
                    bpe = R"({"a": 0, "b": 1, "ab": 2})";
  const auto vocabulary_file = [&](const char* name, const std::string& lines) {
    all.push_back({std::string("vocab.txt: ") + name, [=] {
                     write_file_atomic("vocab.txt", lines);
                     Tokenizer::load("vocab.txt");
                   }});
  };
  vocabulary_file("empty", "");
  vocabulary_file("no [UNK]", "[PAD]\n[CLS]\n[SEP]\na\n");
  vocabulary_file("no [CLS]", "[UNK]\na\n");
  vocabulary_file("not UTF-8", "[UNK]\na\xff\n");
  folder("tokenizer: none", {});
  folder("tokenizer_config.json: a number for a choice",
         {{"vocab.txt", vocabulary}, {"tokenizer_config.json", R"({"do_lower_case": 1})"}});
  folder("tokenizer_config.json: an unknown side",
         {{"vocab.txt", vocabulary}, {"tokenizer_config.json", R"({"truncation_side": "top"})"}});
  folder("vocab.json: no merges.txt", {{"vocab.json", bpe}});
  folder("merges.txt: three tokens", {{"vocab.json", bpe}, {"merges.txt", "a b\na b c\n"}});
  folder("vocab.json: an unknown tokenizer",
         {{"vocab.json", bpe},
          {"merges.txt", "a b\n"},
          {"tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})"}});
  folder("vocab.json: no special tokens", {{"vocab.json", bpe}, {"merges.txt", "a b\n"}});
  folder("sentencepiece.bpe.model: empty", {{"sentencepiece.bpe.model", ""}});
  add_json(all);
  const auto encode = [&](const char* name, const text::EncodeOptions& options) {
    all.push_back({std::string("tokenizer: ") + name, [=] {
                     write_file_atomic("tokenizer.json", small_wordpiece().dump());
                     Tokenizer::load("tokenizer.json").encode_windows("the map", options);
                   }});
  };
  encode("too small a length", {.max_length = 1});
  encode("too large a stride", {.max_length = 3, .stride = 1});
  all.push_back({"tokenizer: a second text that is too short to truncate", [] {
                   write_file_atomic("tokenizer.json", small_wordpiece().dump());
                   Tokenizer::load("tokenizer.json")
                       .encode_pair("the map the map", "the map",
                                    {.max_length = 5, .truncation = text::Truncation::only_second});
                 }});
}

}  // namespace stretto
