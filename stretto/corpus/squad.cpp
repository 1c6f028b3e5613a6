#include "stretto/corpus/squad.h"

#include <algorithm>
#include <unordered_map>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/corpus/encoding.h"
#include "stretto/corpus/tsv.h"

namespace stretto::corpus {
namespace {

class QuestionReader {
 public:
  explicit QuestionReader(std::string name) { set_.name = std::move(name); }

  QuestionSet finish() {
    if (set_.questions.empty())
      throw DataError(
          "{}: the file has no questions; expected SQuAD's JSON or rows with id, question, context and answers",
          set_.name);
    return std::move(set_);
  }

  void read_document(const nlohmann::json& document) {
    if (document.contains("version")) set_.version = plain(document["version"], "version");
    const nlohmann::json& data = list(document, "data", "the file");
    for (size_t i = 0; i < data.size(); ++i) {
      place_ = fmt::format("data[{}]", i);
      if (!data[i].is_object()) throw wrong("is not an object");
      data[i].contains("paragraphs") ? read_article(data[i]) : read_row(data[i]);
    }
  }

  void read_line(const nlohmann::json& row, int64_t line) {
    line_ = line;
    place_ = "the row";
    read_row(row);
  }

 private:
  void read_article(const nlohmann::json& article) {
    const std::string title = article.contains("title") ? plain(article["title"], "title") : "";
    const std::string at = place_;
    const nlohmann::json& paragraphs = list(article, "paragraphs", at);
    for (size_t i = 0; i < paragraphs.size(); ++i) {
      place_ = fmt::format("{}.paragraphs[{}]", at, i);
      const std::string paragraph = place_;
      set_.contexts.push_back(text(paragraphs[i], "context"));
      const nlohmann::json& qas = list(paragraphs[i], "qas", paragraph);
      for (size_t k = 0; k < qas.size(); ++k) {
        place_ = fmt::format("{}.qas[{}]", paragraph, k);
        add(qas[k], title);
      }
    }
  }

  void read_row(const nlohmann::json& row) {
    const std::string context = text(row, "context");
    if (set_.contexts.empty() || set_.contexts.back() != context) set_.contexts.push_back(context);
    add(row, row.contains("title") ? plain(row["title"], "title") : "");
  }

  void add(const nlohmann::json& row, const std::string& title) {
    Question question;
    question.text = text(row, "question");
    if (!row.contains("id")) throw wrong("has no \"id\"");
    question.id = plain(row["id"], "id");
    question.title = title;
    question.context = set_.contexts.size() - 1;
    question.line = line_;
    if (line_ == 0) question.entry = place_;
    place_ += fmt::format(" (question {})", question.id);
    const bool answered = row.contains("answers") && !row["answers"].is_null(),
               marked = row.contains("is_impossible");
    if (answered) read_answers(row["answers"], question);
    set_.has_gold |= answered || marked;
    set_.questions.push_back(std::move(question));
  }

  void read_answers(const nlohmann::json& answers, Question& question) const {
    if (answers.is_array()) {
      for (const nlohmann::json& answer : answers) {
        if (!answer.is_object()) throw wrong("has an answer that is not an object of text and answer_start");
        question.answers.push_back(
            {text(answer, "text"),
             start(answer.contains("answer_start") ? answer["answer_start"] : nullptr)});
      }
      return;
    }
    const bool columns = answers.is_object() && answers.contains("text") && answers["text"].is_array() &&
                         answers.contains("answer_start") && answers["answer_start"].is_array();
    if (!columns)
      throw wrong(
          "has answers of an unknown form; expected [{\"text\", \"answer_start\"}] or {\"text\": [], \"answer_start\": []}");
    const auto &texts = answers["text"], &starts = answers["answer_start"];
    if (texts.size() != starts.size())
      throw wrong(fmt::format("has {} answer texts and {} answer_start; expected equal numbers", texts.size(),
                              starts.size()));
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!texts[i].is_string()) throw wrong("has an answer text that is not a string");
      question.answers.push_back({texts[i].get<std::string>(), start(starts[i])});
    }
  }

  int64_t start(const nlohmann::json& value) const {
    const auto number = whole_number(value);
    if (!number || *number < 0)
      throw wrong(
          "has an answer_start that is not a whole number from 0: the position of the answer in the context");
    return *number;
  }

  const nlohmann::json& list(const nlohmann::json& parent, const char* key, const std::string& at) const {
    if (!parent.is_object() || !parent.contains(key) || !parent[key].is_array())
      throw DataError(
          "{}: {} has no list \"{}\"; expected SQuAD's JSON, or JSON Lines with id, question, context and answers",
          set_.name, at, key);
    return parent[key];
  }

  std::string text(const nlohmann::json& parent, const char* key) const {
    if (!parent.is_object()) throw wrong("is not an object");
    if (!parent.contains(key)) throw wrong(fmt::format("has no \"{}\"", key));
    if (!parent[key].is_string()) throw wrong(fmt::format("\"{}\" is not a string", key));
    return parent[key].get<std::string>();
  }

  // A string or number as text.
  std::string plain(const nlohmann::json& value, const char* key) const {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) return value.dump();
    throw wrong(fmt::format("\"{}\" is neither a string nor a number", key));
  }

  DataError wrong(const std::string& what) const {
    if (line_ > 0) return DataError("{}:{}: {} {}", set_.name, line_, place_, what);
    return DataError("{}: {} {}", set_.name, place_, what);
  }

  QuestionSet set_;
  std::string place_ = "the file";
  int64_t line_ = 0;
};

// Whether the content is JSON Lines: its first line is a row, or an object that is followed by another one.
// SQuAD's files consist of one object.
bool holds_rows(std::string_view content) {
  while (!content.empty()) {
    const std::string_view line = trim(take_line(content));
    if (line.empty()) continue;
    if (!line.starts_with('{') || !line.ends_with('}')) return false;
    const auto has = [line](std::string_view key) { return line.find(key) != std::string_view::npos; };
    return trim(content).starts_with('{') || (has("\"context\"") && !has("\"data\""));
  }
  return false;
}

// "line 14", "data[0].paragraphs[3].qas[1]"
std::string place_in_file(const Question& question) {
  return question.line > 0 ? fmt::format("line {}", question.line) : question.entry;
}

}  // namespace

int64_t QuestionSet::count_unanswerable() const {
  return std::ranges::count_if(questions, [](const Question& question) { return question.answers.empty(); });
}

void QuestionSet::require_distinct_ids() const {
  std::unordered_map<std::string_view, const Question*> by_id;
  for (const Question& question : questions) {
    const auto [first, is_new] = by_id.emplace(question.id, &question);
    if (is_new) continue;
    throw DataError(
        "{}{}: the id \"{}\" occurs a second time, after {}; ids identify predictions: make them unique",
        name, question.line > 0 ? fmt::format(":{}", question.line) : ": " + question.entry, question.id,
        place_in_file(*first->second));
  }
}

std::string QuestionSet::where(const Question& question) const {
  if (question.line > 0) return fmt::format("{}:{}: question {}", name, question.line, question.id);
  return fmt::format("{}: question {}", name, question.id);
}

QuestionSet parse_questions(std::string_view content, const std::string& name) {
  content = utf8_text(content, name);
  QuestionReader reader(name);
  if (!holds_rows(content)) {
    reader.read_document(parse_json(content, name));
    return reader.finish();
  }
  int64_t line = 0;
  while (!content.empty()) {
    const std::string_view row = take_line(content);
    ++line;
    if (!trim(row).empty()) reader.read_line(parse_json(row, name, /*max_depth=*/64, line), line);
  }
  return reader.finish();
}

QuestionSet read_questions(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_questions(file.text(), path.string());
}

}  // namespace stretto::corpus
