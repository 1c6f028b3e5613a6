#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::corpus {

struct Answer {
  std::string text;
  int64_t start = 0;  // in the context, in code points
};

struct Question {
  std::string id = {}, title = {}, text = {};
  size_t context = 0;                // an index into QuestionSet::contexts
  std::vector<Answer> answers = {};  // empty: the context does not answer it
  int64_t line = 0;                  // in JSON Lines, from 1; else 0
};

// Questions on contexts, in the order of the file.
struct QuestionSet {
  std::string name;     // the file, for messages
  std::string version;  // as in the file: "1.1", "v2.0"; "" if it has none
  // As in SQuAD 2.0: there are questions without an answer, is_impossible marks them, or the version is v2.0.
  bool has_impossible = false;
  // The file has right answers, of which an empty list and is_impossible are some: it is no test set without them.
  bool has_gold = false;
  std::vector<std::string> contexts;
  std::vector<Question> questions;

  // The beginning of an error message about a question: "dev.json: question 56be4db0", "dev.jsonl:14: question 7".
  std::string where(const Question& question) const;
};

// Reads questions, each with id, question, context and answers:
//   SQuAD's JSON           {"version", "data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question",
//                          "answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}
//   flat JSON or JSON Lines   {"data": [row, ...]} or a row per line, {"id", "title", "context", "question", "answers":
//                          {"text": [...], "answer_start": [...]}}, as Hugging Face data sets
// Without "answers" a question has none. Throws DataError with the file and the place, IoError.
QuestionSet read_questions(const std::filesystem::path& path);
QuestionSet parse_questions(std::string_view content, const std::string& name);

}  // namespace stretto::corpus
