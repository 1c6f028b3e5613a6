#pragma once

#include <memory>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/temp_folder.h"
#include "stretto/text/tokenizer.h"
#include "stretto/token_corpus/corpus.h"
#include "stretto/token_corpus/tokenize.h"

// The fixture of the tests of corpora.
namespace stretto::token_corpus {

namespace fs = std::filesystem;

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    log::set_output([this](std::string_view line) { logged_.append(line) += '\n'; });
  }
  ~CorpusTest() override { log::set_output({}); }

  static fs::path golden(const std::string& name) {
    return fs::path(STRETTO_SOURCE_DIR) / "tests/golden/tokenizer" / name;
  }
  // RoBERTa's tokenizer adds <s> before and </s> after a text, accepts any bytes, and reads texts in parts.
  static const text::Tokenizer& roberta() {
    static const text::Tokenizer tokenizer = text::Tokenizer::load(golden("roberta"));
    return tokenizer;
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }
  fs::path write(const std::string& name, const std::string& content) const {
    write_file_atomic(path(name), content);
    return path(name);
  }
  bool tokenize_files(const std::vector<fs::path>& files, const std::string& output,
                      const TokenizeOptions& options = {}) const {
    return tokenize(files, roberta(), golden("roberta"), path(output), options);
  }

  std::vector<int32_t> tokens_of(const std::string& output) const {
    const Corpus corpus(path(output));
    std::vector<int32_t> ids;
    corpus.read(0, corpus.tokens(), ids);
    return ids;
  }
  // Returns the tokens of each document.
  std::vector<std::vector<int32_t>> documents_of(const std::string& output) const {
    const Corpus corpus(path(output));
    std::vector<std::vector<int32_t>> documents(static_cast<size_t>(corpus.documents()));
    for (int64_t i = 0; i < corpus.documents(); ++i)
      corpus.read(corpus.document_begin(i), corpus.document_begin(i + 1), documents[static_cast<size_t>(i)]);
    return documents;
  }
  static std::vector<std::vector<int32_t>> encoded(const std::vector<std::string>& texts) {
    std::vector<std::vector<int32_t>> documents;
    for (const std::string& text : texts) documents.push_back(roberta().encode(text).ids);
    return documents;
  }

  // Returns the contents of all files of a corpus by name.
  std::map<std::string, std::string> files_of(const std::string& output) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(path(output))) {
      if (entry.is_regular_file()) files[fs::relative(entry.path(), path(output))] = read_file(entry.path());
    }
    return files;
  }

  // Returns a text of words, numbers and white space of all kinds.
  static std::string random_text(size_t bytes, uint32_t seed) {
    static const std::vector<std::string> parts = {"the",  " film",         " was", "n't", " good",      ".",
                                                   "\n",   "\n\n",          "  ",   " 42", " caf\u00e9", "\t",
                                                   "\r\n", " \u4e2d\u6587", ",",    " x"};
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < bytes) text += parts[random() % parts.size()];
    return text;
  }

  TempFolder folder_;
  std::string logged_;
};

}  // namespace stretto::token_corpus
