#include "stretto/data/question_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::data {
namespace {

struct Asking {
  Asking() {
    write_file_atomic(folder.path() / "vocab.txt",
                      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\nq\n##x\n\xC3\xA9\n");
  }
  QuestionDataset dataset(const corpus::QuestionSet& set, QuestionDatasetOptions options) const {
    options.cache = folder.path() / "cache";
    return {set, text::Tokenizer::load(folder.path() / "vocab.txt", {.lowercase = false}), options};
  }

  TempFolder folder;
};

corpus::QuestionSet one_question(const std::string& question, const std::string& context,
                                 std::vector<corpus::Answer> answers) {
  corpus::QuestionSet set;
  set.name = "d.json";
  set.contexts = {context};
  set.questions = {{.id = "1", .text = question, .answers = std::move(answers)}};
  return set;
}

// A window is [CLS] q [SEP] context [SEP] with four tokens of the context, of which the next window repeats
// two.
TEST(QuestionDataset, WindowsMarkTheAnswerThatTheyContain) {
  const Asking asking;
  const auto set = one_question("q", "a b c d e f", {{"e f", 8}});
  const QuestionDataset dataset = asking.dataset(set, {.max_length = 8, .doc_stride = 2});
  ASSERT_EQ(dataset.size(), 2);
  const Batch batch = dataset.pack(std::vector<int64_t>{0, 1});
  EXPECT_TRUE(at::equal(batch.at("starts"), at::tensor({0, 5}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("ends"), at::tensor({0, 6}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("input_ids"),
                        at::tensor({2, 11, 3, 5, 6, 7, 8, 3, 2, 11, 3, 7, 8, 9, 10, 3}, at::kLong)));
  EXPECT_EQ(dataset.begin_of_context(1), 3);
  EXPECT_EQ(dataset.end_of_context(1), 7);
  EXPECT_EQ(dataset.offsets(1, 5), std::pair(int64_t{8}, int64_t{9}));
  EXPECT_EQ(dataset.question(1), 0);
}

TEST(QuestionDataset, AnswersInsideTokensAndAfterOtherLetters) {
  const Asking asking;
  // Offsets are code points; the answer "b" is a part of the word "bx".
  const auto set = one_question("q", "\xC3\xA9 bx c", {{"b", 2}});
  const QuestionDataset dataset = asking.dataset(set, {.max_length = 16, .doc_stride = 2});
  const Batch batch = dataset.pack(std::vector<int64_t>{0});
  EXPECT_EQ(batch.at("starts")[0].item<int64_t>(), 4);
  EXPECT_EQ(batch.at("ends")[0].item<int64_t>(), 4);
  EXPECT_TRUE(find_misplaced_answers(set).empty());
  auto wrong = set;
  wrong.questions[0].answers[0].start = 1;
  ASSERT_EQ(find_misplaced_answers(wrong).size(), 1u);
  EXPECT_EQ(find_misplaced_answers(wrong)[0].found, " ");
  wrong.questions[0].answers[0].start = 100;
  EXPECT_EQ(find_misplaced_answers(wrong).size(), 1u);
}

TEST(QuestionDataset, UnanswerableQuestionsPointToTheFirstToken) {
  const Asking asking;
  const QuestionDataset dataset =
      asking.dataset(one_question("  q", "a b", {}), {.max_length = 16, .doc_stride = 2});
  const Batch batch = dataset.pack(std::vector<int64_t>{0});
  EXPECT_EQ(batch.at("starts")[0].item<int64_t>(), 0);
  EXPECT_EQ(asking.dataset(one_question("q", "", {}), {.max_length = 16, .doc_stride = 2}).size(), 1);
}

TEST(QuestionDataset, TheCacheBelongsToTheseQuestions) {
  const Asking asking;
  const auto first =
      asking.dataset(one_question("q", "a b", {{"a", 0}}), {.max_length = 16, .doc_stride = 2});
  const auto again =
      asking.dataset(one_question("q", "a b", {{"a", 0}}), {.max_length = 16, .doc_stride = 2});
  const auto other =
      asking.dataset(one_question("q", "a b", {{"b", 2}}), {.max_length = 16, .doc_stride = 2});
  EXPECT_EQ(first.fingerprint(), again.fingerprint());
  EXPECT_NE(first.fingerprint(), other.fingerprint());
}

// Training uses the first answer of a question, scoring uses all of them.
TEST(QuestionDataset, TheFingerprintOfScoredQuestionsCoversAllAnswers) {
  const Asking asking;
  const auto fingerprint = [&](const std::string& second, bool is_scored) {
    return asking
        .dataset(one_question("q", "a b", {{"a", 0}, {second, 2}}),
                 {.max_length = 16, .doc_stride = 2, .is_scored = is_scored})
        .fingerprint();
  };
  EXPECT_EQ(fingerprint("b", false), fingerprint("c", false));
  EXPECT_EQ(fingerprint("b", true), fingerprint("b", true));
  EXPECT_NE(fingerprint("b", true), fingerprint("c", true));
}

TEST(QuestionDataset, QuestionsWithoutRoomForTheContextAreNamed) {
  const Asking asking;
  EXPECT_THAT(message_of<DataError>([&] {
                asking.dataset(one_question("q q q q", "a b c d", {}), {.max_length = 8, .doc_stride = 2});
              }),
              has_all("d.json: question 1: ", "4 tokens", "too little", "max_length: 8"));
}

}  // namespace
}  // namespace stretto::data
