#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::corpus {

struct Answer {
  std::string text;
  int64_t start = 0;  // position in the context, in code points
};

struct Question {
  std::string id = {}, title = {}, text = {};
  size_t context = 0;                // an index into QuestionSet::contexts
  std::vector<Answer> answers = {};  // empty: the context does not answer it
  int64_t line = 0;                  // line in JSON Lines, from 1; else 0
  std::string entry = {};            // position in one JSON object: "data[0].paragraphs[3].qas[1]"; else ""
};

// Questions on contexts, in the order of the file.
struct QuestionSet {
  std::string name;     // the file, for messages
  std::string version;  // the file's version: "1.1", "v2.0"; "" if it has none
  // Whether the file has gold answers, which includes empty lists and is_impossible; false for a test set
  // without answers.
  bool has_gold = false;
  std::vector<std::string> contexts;
  std::vector<Question> questions;

  // The number of questions without an answer. If there are any, the file is treated as SQuAD 2.0, else as
  // 1.1. The fields version and is_impossible are ignored for this decision, because conversions leave them
  // in files of the other kind.
  int64_t count_unanswerable() const;

  // Throws DataError with both places if an id occurs twice, since ids identify predictions.
  void require_distinct_ids() const;

  // The beginning of an error message about a question: "dev.json: question 56be4db0", "dev.jsonl:14:
  // question 7".
  std::string where(const Question& question) const;
};

// Reads questions, each with id, question, context and answers:
//   SQuAD's JSON   {"version", "data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question",
//                  "answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}
//   flat JSON      {"data": [row, ...]}, or JSON Lines with a row per line, like Hugging Face data sets; a
//                  row is {"id", "title", "context", "question",
//                  "answers": {"text": [...], "answer_start": [...]}}
// A question without "answers" has none. Throws DataError with the file and the place, IoError.
QuestionSet read_questions(const std::filesystem::path& path);
QuestionSet parse_questions(std::string_view content, const std::string& name);

}  // namespace stretto::corpus
