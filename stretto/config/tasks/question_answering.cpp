#include "stretto/config/tasks/question_answering.h"

#include "stretto/config/task_kind.h"
#include "stretto/model_config/heads.h"
#include "stretto/settings/rule.h"

namespace stretto {
namespace {

constexpr double most_tokens = 1e6;

}  // namespace

void QuestionAnsweringConfig::fields(settings::Fields& field) {
  field(
      "version_2_with_negative", version_2_with_negative,
      "whether questions may have no answer, as in SQuAD 2.0; unset: if one of the evaluated file has none");
  field("doc_stride", doc_stride, "tokens of the context that consecutive windows share",
        settings::at_least(0).at_most(most_tokens));
  field("n_best_size", n_best_size, "answers per question in nbest_predictions.json",
        settings::at_least(1).at_most(1000).may_change_on_resume());
  field("max_answer_length", max_answer_length, "maximum tokens of an answer",
        settings::at_least(1).at_most(most_tokens).may_change_on_resume());
  field(
      "null_score_diff_threshold", null_score_diff_threshold,
      "a question is predicted to have no answer if the score of that exceeds the best answer's by more than this",
      settings::may_change_on_resume());
  field(
      "misplaced_answers", misplaced_answers,
      "training answers whose text is not at its answer_start: refuse ends the run, skip leaves the question out");
}

TaskKind question_answering_kind() {
  return {.name = "question-answering",
          .help = "windows and answers",
          .settings = settings::Settings(QuestionAnsweringConfig{}),
          .head = heads::question_answering,
          .default_monitor = [](const Recipe&) { return "f1"; },
          .max_length = 384,
          .divides_models = true};
}

}  // namespace stretto
