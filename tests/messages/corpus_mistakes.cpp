#include <filesystem>

#include "tests/messages/mistakes.h"

#include "stretto/base/files.h"
#include "stretto/columnar/json_lines.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/mixture.h"
#include "stretto/token_corpus/tokenize.h"

namespace stretto::token_corpus {
namespace {

// Writes a word-level tokenizer of these words.
text::Tokenizer words_tokenizer(const std::vector<std::string>& words,
                                const std::string& name = "words.json") {
  std::string vocabulary;
  for (size_t id = 0; id < words.size(); ++id)
    vocabulary += fmt::format("{}\"{}\": {}", id == 0 ? "" : ", ", words[id], id);
  write_file_atomic(
      name, R"({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel", "unk_token": "?",
"vocab": {)" + vocabulary +
                "}}}");
  return text::Tokenizer::load(name);
}

TokenizeOptions named(TokenizeOptions options) {
  options.names = {{"column", "--column"},
                   {"eos", "--no-eos"},
                   {"eos_token", "--eos"},
                   {"output", "--output"},
                   {"overwrite", "--overwrite"}};
  return options;
}

bool make(const std::string& file, const std::string& content, TokenizeOptions options = {.eos = false}) {
  const auto tokenizer = words_tokenizer({"?", "a", "film"});
  write_file_atomic(file, content);
  return tokenize({file}, tokenizer, "words.json", "corpus", named(std::move(options)));
}

// Opens the corpus of a file after applying `change`.
std::function<void()> opened(const std::function<void()>& change) {
  return [change] {
    make("a.txt", "a film a");
    change();
    Corpus corpus("corpus");
  };
}

void add_texts(Mistakes& all) {
  const auto add = [&](const char* name, const char* file, const std::string& content,
                       const TokenizeOptions& options = {.eos = false}) {
    all.push_back({std::string("corpus text: ") + name, [=] { make(file, content, options); }});
  };
  add("no end of documents", "a.txt", "a", {});
  add("an end that the tokenizer lacks", "a.txt", "a", {.eos_token = "</s>"});
  add("a key that is not there", "a.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"b\"}\n");
  add("a number for a text", "a.jsonl", "{\"text\": 7}\n");
  add("a list for a line", "a.jsonl", "[{\"text\": \"a\"}]\n");
  add("not UTF-8", "a.txt", "a\nfilm \xff\n");
  add("UTF-16", "a.txt",
      std::string("\xff\xfe"
                  "a\0",
                  4));
  for (const auto& [name, format] : {std::pair("a Parquet file", columnar::Format::parquet),
                                     {"an Arrow file", columnar::Format::arrow_stream}}) {
    all.push_back({std::string("corpus text: ") + name + " without Arrow",
                   [format] { columnar::JsonLines("a.parquet", format, "", "libmissing.so"); }});
  }
  add("xz", "a.txt.xz",
      "\xFD"
      "7zXZ");
  add("gzip that is cut short", "a.txt.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10));
  add("a file with NUL bytes", "a.bin", std::string("a\0b", 3));
}

void add_folders(Mistakes& all) {
  const auto add = [&](const char* name, std::function<void()> make_mistake) {
    all.push_back({std::string("corpus: ") + name, std::move(make_mistake)});
  };
  add("no corpus", [] { Corpus corpus("."); });
  add("files of something else", [] {
    make_folders("corpus");
    write_file_atomic("corpus/thesis", "text");
    make("a.txt", "a");
  });
  add("other options", [] {
    make("a.txt", "a");
    make("a.txt", "a", {.documents = {.rule = DocumentRule::line}, .eos = false});
  });
  add("a file that has changed", [] {
    make("a.txt", "a");
    make("a.txt", "film");
  });
  add("not complete", opened([] {
        token_corpus::Manifest manifest = token_corpus::read_manifest("corpus");
        manifest.next.emplace();
        write_manifest(manifest, "corpus");
      }));
  add("of another version",
      opened([] { write_file_atomic("corpus/corpus.json", "{\"format\": \"stretto token corpus 9\"}"); }));
  add("cut short", opened([] { std::filesystem::resize_file("corpus/tokens-00000.bin", 4); }));
  add("of another tokenizer", [] {
    make("a.txt", "a");
    open_corpus("corpus", words_tokenizer({"?", "film"}, "other.json"), "other.json", "cache");
  });
  const auto blocks = [](int32_t size) {
    make("a.txt", "a film a");
    return std::make_shared<const CorpusBlocks>(std::make_shared<const Corpus>("corpus"),
                                                BlockOptions{.block_size = size, .drop_last = true});
  };
  add("blocks of one token", [=] { blocks(1); });
  add("blocks longer than the corpus", [=] { blocks(4); });
  add("a weight of 0", [=] { Mixture({{blocks(2), 0}}); });
}

}  // namespace
}  // namespace stretto::token_corpus

void stretto::add_token_corpora(Mistakes& all) {
  token_corpus::add_texts(all);
  token_corpus::add_folders(all);
}
