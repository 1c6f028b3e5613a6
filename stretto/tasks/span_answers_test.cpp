#include "stretto/tasks/span_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/tasks/extractive_qa.h"

namespace stretto::tasks {
namespace {

using ::testing::ElementsAre;

// [CLS] q [SEP] a b c d [SEP]: the context is tokens 3 to 6.
struct FourWords {
  FourWords() {
    write_file_atomic(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\nq\n");
    questions.name = "d.json";
    questions.contexts = {"a b c d"};
    questions.questions = {{.id = "1", .text = "q", .answers = {{"b", 2}}}};
    dataset.emplace(
        questions, text::Tokenizer::load(folder.path() / "vocab.txt"),
        data::QuestionDatasetOptions{.max_length = 16, .doc_stride = 2, .cache = folder.path() / "cache"});
  }
  QuestionAnswers choose(const WindowScores& window, const AnswerOptions& options) const {
    return answer_questions(questions, *dataset, std::vector<WindowScores>{window}, options).at(0);
  }

  TempFolder folder;
  corpus::QuestionSet questions;
  std::optional<data::QuestionDataset> dataset;
};

TEST(SpanAnswers, TheBestPairInsideTheContextIsChosen) {
  const FourWords four;
  const WindowScores window = {
      .null_start = 1, .null_end = 1, .starts = {{1, 9}, {4, 5}, {5, 4}}, .ends = {{6, 5}, {4, 4}, {0, 9}}};
  const QuestionAnswers answers = four.choose(window, {});
  EXPECT_EQ(answers.answer, "b c d");
  EXPECT_FALSE(answers.null_odds.has_value());
  std::vector<std::string> texts;
  double sum = 0;
  for (const CandidateAnswer& candidate : answers.n_best) {
    texts.push_back(candidate.text);
    sum += candidate.probability;
  }
  EXPECT_THAT(texts, ElementsAre("b c d", "b", "c d"));
  EXPECT_DOUBLE_EQ(sum, 1);
  EXPECT_EQ(four.choose(window, {.max_answer_length = 2}).answer, "b");
  EXPECT_EQ(four.choose(window, {.n_best_size = 2}).n_best.size(), 2u);
}

TEST(SpanAnswers, NoAnswerIsChosenByItsOdds) {
  const FourWords four;
  const WindowScores window = {.null_start = 6, .null_end = 5, .starts = {{4, 5}}, .ends = {{4, 4}}};
  const QuestionAnswers answers = four.choose(window, {.null_answers = true});
  EXPECT_EQ(answers.answer, "");
  EXPECT_EQ(answers.null_odds, 2);
  EXPECT_EQ(answers.n_best.front().start_score, 6);
  EXPECT_EQ(answers.n_best.back().text, "b");
  EXPECT_EQ(four.choose(window, {.null_answers = true, .null_score_diff_threshold = 3}).answer, "b");
  EXPECT_EQ(four.choose(window, {}).answer, "b");
}

TEST(SpanAnswers, WithoutCandidatesThereIsNoAnswer) {
  const FourWords four;
  const WindowScores window = {.null_start = 1, .null_end = 1, .starts = {{0, 5}}, .ends = {{0, 4}}};
  EXPECT_EQ(four.choose(window, {}).answer, "");
  EXPECT_EQ(four.choose(window, {}).n_best.size(), 1u);
  EXPECT_EQ(four.choose(window, {.null_answers = true}).null_odds, 0);
}

TEST(SpanAnswers, RowsContainTheBestTokensOfEachSequence) {
  Batch batch;
  batch.count = 2;
  batch.tensors["cu_seqlens"] = at::tensor({0, 2, 5}, at::kLong);
  batch.tensors["position_ids"] = at::tensor({0, 1, 0, 1, 2, 0}, at::kLong);
  const Tensor logits =
      at::tensor({1.0, 2.0, 3.0, 4.0, 0.0, 6.0, 7.0, 5.0, 8.0, 1.0, 99.0, 99.0}).view({6, 2});
  const Tensor rows = best_tokens(scores_by_sequence(logits, batch), 3);
  const auto window = [&](int64_t i) {
    return window_scores({rows[i].const_data_ptr<double>(), static_cast<size_t>(rows.size(1))});
  };
  const WindowScores first = window(0), second = window(1);
  EXPECT_EQ(first.null_start, 1);
  EXPECT_EQ(first.null_end, 2);
  ASSERT_EQ(first.starts.size(), 2u) << "the sequence has two tokens";
  EXPECT_EQ(first.starts[0].token, 1);
  EXPECT_EQ(first.ends[0].score, 4);
  ASSERT_EQ(second.ends.size(), 3u);
  EXPECT_EQ(second.starts[0].token, 2);
  EXPECT_EQ(second.ends[0].token, 0);
  EXPECT_EQ(second.ends[2].score, 1);
}

}  // namespace
}  // namespace stretto::tasks
