#include "tests/messages/mistakes.h"

#include "stretto/base/error.h"
#include "stretto/config/data_names.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/corpus/squad.h"
#include "stretto/corpus/tagged.h"
#include "stretto/corpus/tags.h"
#include "stretto/data/reader.h"
#include "stretto/data/similar_labels.h"

namespace stretto {
namespace {

void add_rows(Mistakes& all) {
  using data::ReadOptions;
  static const data::LabelSet classes({"NEGATIVE", "POSITIVE"});
  const auto add = [&](const char* name, const char* file, const std::string& content,
                       ReadOptions options = {}) {
    options.names = data_names;
    all.push_back({std::string("rows: ") + name, [=] { data::parse_rows(content, file, options); }});
  };
  add("no header and many columns", "cola.tsv", "gj04\t1\t\tx\ngj04\t0\t*\ty\n");
  add("an open quote", "a.csv", "text,label\nfine,1\n\"open,0\nnext,1\n");
  add("text behind a quote", "a.csv", "text,label\n\"x\"y,0\n");
  add("a missing text", "a.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"b\"}\n");
  add("a list for a text", "a.jsonl", "{\"text\": [\"a\"], \"label\": 1}\n");
  add("a list of labels", "a.jsonl", "{\"text\": \"a\", \"label\": [0, 2]}\n");
  add("an unknown kind of file", "a.xlsx", "");
  add("an unknown column", "a.tsv", "sentence\tlabel\ngood\t1\n", {.columns = {.text = "sentense"}});
  add("a column name without a header", "a.tsv", "good\t1\n", {.columns = {.text = "sentence"}});
  add("a column that occurs twice", "a.csv", "text,text,label\nx,y,1\n");
  add("no label column", "a.csv", "text,other\nx,1\n", {.require_labels = true});
  add("a label that the model lacks", "a.tsv", "sentence\tlabel\nx\tpostive\n", {.labels = &classes});
  add("a label out of range", "a.tsv", "sentence\tlabel\na\t0\nx\t2\n", {.labels = &classes});
  add("a negative label", "a.tsv", "a\t0\nb\t-3\n");
  add("a fraction as label", "a.tsv", "a\t0\nb\t0.5\n");
  add("a row without label", "a.tsv", "a\t0\nb\t\n");
  add("an unknown header", "a.tsv", "phrase\tverdict\na\tno\nb\tyes\nc\tno\nd\tyes\n");
  add("numbers and words as labels", "a.tsv", "phrase\tverdict\na\t0\nb\t1\n");
  add("labels that are all missing", "a.jsonl", "{\"text\": \"a\", \"label\": -1}\n",
      {.require_labels = true});
  add("semicolons", "a.csv", "Text;Label\ngood;1\n");
  add("not UTF-8", "a.csv", "text,label\na,1\ncaf\xe9,0\n");
  add("a NUL byte", "a.tsv", std::string("good\t1\nb\0d\t0\n", 13));
  add("not a number for a regression", "a.csv", "text,label\na,1\nb,good\n",
      {.problem = ProblemType::regression});
  add("an unknown one of several classes", "a.csv", "text,label\na,\"POSITIVE,POSITIV\"\n",
      {.problem = ProblemType::multi_label_classification, .labels = &classes});
  all.push_back(
      {"rows: one class", [] { data::check_training_labels(data::parse_rows("a\t1\nb\t1\n", "a.tsv")); }});
  all.push_back({"rows: labels that differ in case", [] {
                   const auto table = data::parse_rows("text,label\na,Pos\nb,neg\nc,pos\nd,Pos\n", "a.csv");
                   throw DataError("{}", data::describe_similar_labels("a.csv", data::label_uses(table)));
                 }});
}

void add_corpora(Mistakes& all) {
  using corpus::TaggedOptions;
  const auto tagged = [&](const char* name, const char* file, const std::string& content,
                          TaggedOptions options = {}) {
    options.names = names_of_words();
    all.push_back({std::string("tagged: ") + name, [=] { corpus::parse_tagged(content, file, options); }});
  };
  tagged("a column that is not there", "a.conll", "a\tO\n", {.tag = "3"});
  tagged("no tags", "a.conll", "a\nb\n", {.require_tags = true});
  tagged("a table of texts", "train.tsv", "sentence\tlabel\na good film\t1\nnot good\t0\n");
  all.push_back({"tagged: an unknown scheme", [] {
                   corpus::parse_tag_scheme("IBO", {{"scheme", "--scheme"}});
                 }});
  tagged("no tokens", "a.jsonl", "{\"text\": \"x\"}");
  tagged("tags that are numbers", "a.jsonl", "{\"tokens\": [\"x\"], \"tags\": [1]}");
  tagged("more tags than tokens", "a.jsonl", "{\"tokens\": [\"x\"], \"tags\": [\"O\", \"O\"]}");
  const auto questions = [&](const char* name, const std::string& content) {
    all.push_back({std::string("questions: ") + name,
                   [=] { corpus::parse_questions(content, "d.json").require_distinct_ids(); }});
  };
  const std::string row = R"({"id": "7", "context": "a b", "question": "q"})";
  questions("an id that occurs twice", row + "\n\n" + row + "\n");
  questions("an id that occurs twice in a list", R"({"data": [)" + row + ", " + row + "]}");
  questions("no list", "{}");
  questions("no questions", R"({"data": []})");
  questions("a context that is no text", R"({"data": [{"paragraphs": [{"context": 1}]}]})");
  questions("a question without id",
            R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q"}]}]}]})");
  questions(
      "texts without positions",
      R"({"id": "7", "context": "c", "question": "q", "answers": {"text": ["a"], "answer_start": []}})");
}

}  // namespace

void add_data(Mistakes& all) {
  add_rows(all);
  add_corpora(all);
}

}  // namespace stretto
