#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/settings/fields.h"
#include "stretto/settings/one_of.h"

namespace stretto {

struct TaskKind;  // config/task_kind.h

// Values of question_answering.misplaced_answers.
enum class MisplacedAnswers { refuse, skip };
constexpr auto names_of(MisplacedAnswers) { return std::to_array<std::string_view>({"refuse", "skip"}); }

// The section question_answering: windows and answers.
struct QuestionAnsweringConfig {
  std::optional<bool> version_2_with_negative = std::nullopt;
  int64_t doc_stride = 128;
  int64_t n_best_size = 20;
  int64_t max_answer_length = 30;
  double null_score_diff_threshold = 0;
  settings::OneOf<MisplacedAnswers> misplaced_answers = MisplacedAnswers::refuse;

  void fields(settings::Fields& field);
  bool operator==(const QuestionAnsweringConfig&) const = default;
};

TaskKind question_answering_kind();

}  // namespace stretto
