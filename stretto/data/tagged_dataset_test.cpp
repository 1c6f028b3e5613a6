#include "stretto/data/tagged_dataset.h"

#include <fstream>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t ignored = -100;

// A tokenizer whose words are letters; "ab" has the pieces a and ##b.
struct Tagging {
  Tagging() {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char c = 'a'; c <= 'z'; ++c) vocabulary += fmt::format("{}\n##{}\n", c, c);
    write_file_atomic(folder.path() / "vocab.txt", vocabulary);
  }
  text::Tokenizer tokenizer() const { return text::Tokenizer::load(folder.path() / "vocab.txt"); }
  TaggedDataset dataset(const std::string& conll, TaggedDatasetOptions options) const {
    options.cache = folder.path() / "cache";
    return {corpus::parse_tagged(conll, "a.conll"), tags, tokenizer(), options};
  }
  std::string failure(const std::string& conll, const TaggedDatasetOptions& options) const {
    return message_of([&] { dataset(conll, options); });
  }

  TempFolder folder;
  LabelSet tags{{"B-X", "I-X", "O"}};
};

std::vector<int64_t> values_of(const Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()};
}

TEST(TaggedDataset, LabelsTheFirstTokenOfEachWord) {
  const Tagging tagging;
  const std::string conll = "a O\nbcd B-X\nef I-X\n\ng O\n";
  const TaggedDataset dataset = tagging.dataset(conll, {.max_length = 16, .pad_to_multiple_of = 4});
  EXPECT_EQ(dataset.length_of(0), 8);
  EXPECT_EQ(dataset.length_of(1), 3);
  const Batch batch = dataset.pack(std::vector<int64_t>{0, 1});
  EXPECT_THAT(values_of(batch.at("labels")),
              ElementsAre(ignored, 2, 0, ignored, ignored, 1, ignored, ignored, ignored, 2, ignored, ignored))
      << "the last token is padding";
  EXPECT_THAT(values_of(batch.at("words")), ElementsAre(-1, 0, 1, -1, -1, 2, -1, -1, -1, 0, -1, -1));
  const TaggedDataset all = tagging.dataset(conll, {.max_length = 16, .label_all_tokens = true});
  EXPECT_THAT(values_of(all.pack(std::vector<int64_t>{0}).at("labels")),
              ElementsAre(ignored, 2, 0, 1, 1, 1, 1, ignored));
  EXPECT_NE(all.fingerprint(), dataset.fingerprint());
  EXPECT_FALSE(tagging.dataset("a\nb\n", {}).pack(std::vector<int64_t>{0}).has("labels"));
}

// In windows of any size, each word is predicted once, at its first token.
TEST(TaggedDataset, WindowsCoverEveryWordOnce) {
  const Tagging tagging;
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::string conll;
    int64_t words = 0;
    for (int i = 0; i < 40; ++i, ++words)
      conll += std::string(1 + random() % 5, static_cast<char>('a' + i % 26)) + " O\n";
    const int64_t room = 2 + static_cast<int64_t>(random() % 12);
    const TaggedDatasetOptions options = {
        .max_length = room + 2, .stride = static_cast<int64_t>(random() % static_cast<uint64_t>(room))};
    const TaggedDataset dataset = tagging.dataset(conll, options);
    std::vector<std::vector<int32_t>> rows;
    int32_t next = 0;
    for (int64_t sample = 0; sample < dataset.size(); ++sample) {
      const Batch batch = dataset.pack(std::vector<int64_t>{sample});
      EXPECT_LE(dataset.length_of(sample), options.max_length);
      auto& row = rows.emplace_back();
      for (const int64_t word : values_of(batch.at("words")))
        if (word >= 0) row.push_back(next++);
    }
    EXPECT_EQ(next, words);
    std::vector<int64_t> samples(rows.size());
    std::iota(samples.begin(), samples.end(), 0);
    const auto by_sentence = dataset.by_sentence(samples, rows).ids;
    ASSERT_EQ(by_sentence.size(), 1u);
    EXPECT_THAT(by_sentence[0], ::testing::Each(::testing::Ge(0)));
  }
}

TEST(TaggedDataset, LongSentencesFollowTheOption) {
  const Tagging tagging;
  const std::string conll = "a O\nb B-X\nc I-X\nd O\n";
  const TaggedDataset cut = tagging.dataset(conll, {.max_length = 4, .long_sentences = LongSentences::cut});
  EXPECT_EQ(cut.size(), 1);
  EXPECT_EQ(cut.unpredicted_words(), 2);
  const std::vector<std::vector<int32_t>> rows = {{2, 0}};
  EXPECT_THAT(cut.by_sentence(std::vector<int64_t>{0}, rows).ids[0], ElementsAre(2, 0, -1, -1));
  EXPECT_THAT(cut.by_sentence({}, {}).whole, ElementsAre(false));
  EXPECT_THAT(
      tagging.failure(conll, {.max_length = 4, .long_sentences = LongSentences::refuse}),
      has_all("a.conll:1: the sentence has 6 tokens", "max_length: 4", "long_sentences to window or cut"));
  const TaggedDataset windows = tagging.dataset(conll, {.max_length = 5, .stride = 1});
  EXPECT_EQ(windows.size(), 2);
  EXPECT_EQ(windows.windows(), 2);
}

TEST(TaggedDataset, Refusals) {
  const Tagging tagging;
  EXPECT_THAT(tagging.failure("a B-Y\n", {}),
              HasSubstr("a.conll:1: the tag \"B-Y\" is not one of B-X, I-X, O"));
  EXPECT_THAT(tagging.failure("a O\n", {.max_length = 2}),
              AllOf(StartsWith("max_length is 2"), has_all("2 are special tokens", "no room", "words")));
  EXPECT_THAT(tagging.failure("a O\n", {.max_length = 6, .stride = 4}),
              AllOf(StartsWith("stride is 4"), has_all("max_length: 6", "room for 4 tokens")));
  tagging.dataset("a O\n", {});
  for (const auto& entry : std::filesystem::directory_iterator(tagging.folder.path() / "cache"))
    std::ofstream(entry.path(), std::ios::app) << "x";
  EXPECT_THAT(tagging.failure("a O\n", {}), HasSubstr("delete the file"));
}

// A tokenizer of whole words, which taggers use, adds no special tokens, so that a sentence may have no token
// at all.
TEST(TaggedDataset, CharactersOfWholeWords) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "tokenizer.json", R"({"normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "ab": 1}, "unk_token": "<unk>"}})");
  const corpus::TaggedCorpus corpus =
      corpus::parse_tagged(R"({"tokens": ["Ab", "", "c a"], "tags": ["B-X", "O", "O"]})"
                           "\n"
                           R"({"tokens": [""], "tags": ["O"]})"
                           "\n",
                           "a.jsonl");
  const TaggedDataset dataset(
      corpus, LabelSet({"B-X", "I-X", "O"}), text::Tokenizer::load(folder.path()),
      {.max_length = 16, .characters = "abA", .cache = folder.path(), .pad_to_multiple_of = 8});
  const Batch batch = dataset.pack(std::vector<int64_t>{0, 1});
  EXPECT_THAT(values_of(batch.at("cu_seqlens")), ElementsAre(0, 3, 4));
  EXPECT_THAT(values_of(batch.at("input_ids").slice(0, 0, 4)), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(values_of(batch.at("words").slice(0, 0, 4).contiguous()), ElementsAre(0, 1, -1, -1))
      << "of a word of two tokens the first counts, and one without a token is not predicted";
  EXPECT_THAT(values_of(batch.at("characters")), ElementsAre(3, 2, 0, 1)) << "as written, not in lower case";
  EXPECT_THAT(values_of(batch.at("character_cu_seqlens")), ElementsAre(0, 2, 3, 4, 4, 4, 4, 4, 4));
}

// The ids of letters as text.
std::string letters_of(const Batch& batch) {
  std::string text;
  for (const int64_t id : values_of(batch.at("input_ids")))
    text += id < 5 ? '|' : static_cast<char>('a' + (id - 5) / 2);
  return text;
}

TEST(TaggedDataset, ContextIsReadAndNotPredicted) {
  const Tagging tagging;
  const std::string conll = "-DOCSTART- O\n\na O\nb O\n\nc B-X\nde I-X\n\n-DOCSTART- O\n\nf O\n\ngh O\n";
  const auto samples_of = [&](const ContextOptions& context, int64_t max_length) {
    std::vector<std::string> samples;
    const TaggedDataset dataset =
        tagging.dataset(conll, {.max_length = max_length, .context = context, .pad_to_multiple_of = 1});
    for (int64_t i = 0; i < dataset.size(); ++i) samples.push_back(letters_of(dataset.pack(std::vector{i})));
    return samples;
  };
  EXPECT_THAT(samples_of({}, 16), ElementsAre("|ab|", "|cde|", "|f|", "|gh|"));
  EXPECT_THAT(samples_of({.words = 1}, 16), ElementsAre("|abc|", "|bcde|", "|fgh|", "|fgh|"));
  EXPECT_THAT(samples_of({.words = 2, .within_document = false}, 16),
              ElementsAre("|abcde|", "|abcdefgh|", "|cdefgh|", "|defgh|"));
  // A separator is in front of a sentence and behind it, also without context.
  EXPECT_THAT(samples_of({.words = 1, .separator = 4}, 16),
              ElementsAre("||ab|c|", "|b|cde||", "||f|gh|", "|f|gh||"));
  EXPECT_THAT(samples_of({.separator = 4}, 16), ElementsAre("||ab||", "||cde||", "||f||", "||gh||"));
  EXPECT_THAT(samples_of({.words = 9, .separator = 4}, 7),
              ElementsAre("||ab|c|", "||cde||", "||f|gh|", "|f|gh||"));
  EXPECT_THAT(samples_of({.words = 9, .separator = 4}, 6).at(1), "|cde|") << "no room for them";
  // Context that does not fit is dropped, the farthest words of the longer side first; longer sentences are
  // split into windows without context.
  EXPECT_THAT(samples_of({.words = 9, .within_document = false}, 7),
              ElementsAre("|abcde|", "|bcdef|", "|defgh|", "|defgh|"));
  EXPECT_THAT(samples_of({.words = 9}, 4).front(), "|ab|");

  const TaggedDataset dataset = tagging.dataset(conll, {.max_length = 16, .context = {.words = 1}});
  const Batch batch = dataset.pack(std::vector<int64_t>{1});
  EXPECT_THAT(values_of(batch.at("words")), ElementsAre(-1, -1, 0, 1, -1, -1));
  EXPECT_THAT(values_of(batch.at("labels")), ElementsAre(ignored, ignored, 0, 1, ignored, ignored));
  EXPECT_THAT(dataset.words(), ElementsAre(2, 2, 1, 1));

  TaggedDatasetOptions separated = {
      .max_length = 16, .context = {.words = 1, .separator = 4, .marked = true}, .pad_to_multiple_of = 1};
  const TaggedDataset with = tagging.dataset(conll, separated);
  const Batch between = with.pack(std::vector<int64_t>{1});
  EXPECT_THAT(values_of(between.at("words")), ElementsAre(-1, -1, -1, 0, 1, -1, -1, -1));
  EXPECT_EQ(letters_of(with.pack_without_context(std::vector<int64_t>{1}, {true})), "||cde||");
}

TEST(TaggedDataset, ContextCanBeLeftOut) {
  const Tagging tagging;
  const std::string conll = "a O\nb O\n\nc B-X\nde I-X\n\nf O\n";
  const TaggedDatasetOptions options = {.max_length = 16, .characters = "abcdef", .pad_to_multiple_of = 4};
  TaggedDatasetOptions with = options;
  with.context = {.words = 2, .marked = true};
  const TaggedDataset plain = tagging.dataset(conll, options), marked = tagging.dataset(conll, with);
  with.context.marked = false;
  const TaggedDataset unmarked = tagging.dataset(conll, with);
  const std::vector<int64_t> samples = {1, 0, 2};
  const auto expect_equal = [](const Batch& found, const Batch& wanted) {
    ASSERT_EQ(found.tensors.size(), wanted.tensors.size());
    for (const auto& [name, tensor] : wanted.tensors) EXPECT_TRUE(found.at(name).equal(tensor)) << name;
    EXPECT_EQ(found.sample_ids, wanted.sample_ids);
  };
  expect_equal(marked.pack(samples), unmarked.pack(samples));
  expect_equal(marked.pack_without_context(samples, {false, false, false}), unmarked.pack(samples));
  expect_equal(marked.pack_without_context(samples, {true, true, true}), plain.pack(samples));
  EXPECT_EQ(letters_of(marked.pack_without_context(samples, {false, true, false})), "|abcdef||ab||cdef|||")
      << "the last two tokens are padding";
  EXPECT_THAT(marked.words(), ElementsAre(2, 2, 1));
}

}  // namespace
}  // namespace stretto::data
