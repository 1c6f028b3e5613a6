#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/corpus/squad.h"
#include "stretto/corpus/tagged.h"

namespace stretto::corpus {
namespace {

std::string mutate(std::string text, std::mt19937_64& random) {
  static const std::string special("\"\t\n\r,\\{}[]: -BIOES0.e\0\xEF\xFF", 24);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t edits = 1 + below(6); edits > 0; --edits) {
    const size_t at = text.empty() ? 0 : below(text.size());
    switch (below(4)) {
      case 0:
        text.insert(at, 1, special[below(special.size())]);
        break;
      case 1:
        text.erase(at, 1 + below(6));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size() + 1), below(40)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

// Whatever the bytes, readers return consistent content or throw one of stretto's own errors.
TEST(CorpusFuzz, OnlyStrettoErrors) {
  const std::vector<std::pair<std::string, std::string>> seeds = {
      {"a.conll", "-DOCSTART- O\n\nEU B-ORG\nwas O\n\nPeter U-PER\n"},
      {"a.conll", "# c\nNew York\tB-LOC\n\n#\tO\n"},
      {"a.jsonl",
       "{\"tokens\": [\"EU\", \"was\"], \"ner_tags\": [\"B-ORG\", \"O\"]}\n{\"tokens\": [\"a\"], \"ner_tags\": [1]}\n"}};
  const std::vector<std::string> questions = {
      R"({"version": "v2.0", "data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": [{"id": "1", "question": "w",)"
      R"( "answers": [{"text": "b", "answer_start": 2}], "is_impossible": false}]}]}]})",
      "{\"id\": 1, \"context\": \"a\", \"question\": \"q\", \"answers\": {\"text\": [\"a\"], \"answer_start\": [0]}}\n"
      "{\"id\": 2, \"context\": \"a\", \"question\": \"q\"}\n"};
  std::mt19937_64 random(5);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    try {
      if (random() % 2 == 0) {
        const auto& [name, seed] = seeds[random() % seeds.size()];
        const TaggedCorpus corpus =
            parse_tagged(mutate(seed, random), name, {.tag_names = {"O", "B-X"}, .scheme = TagScheme::iobes});
        for (const TaggedSentence& sentence : corpus.sentences)
          ASSERT_EQ(sentence.tags.size(), corpus.has_tags ? sentence.tokens.size() : 0);
      } else {
        const QuestionSet set =
            parse_questions(mutate(questions[random() % questions.size()], random), "d.json");
        for (const Question& question : set.questions) ASSERT_LT(question.context, set.contexts.size());
      }
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace stretto::corpus
