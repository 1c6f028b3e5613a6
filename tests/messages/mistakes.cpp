#include "tests/messages/mistakes.h"

#include <fmt/format.h>

#include "stretto/base/json.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/config/recipe.h"
#include "stretto/corpus/squad.h"
#include "stretto/corpus/tagged.h"
#include "stretto/data/reader.h"
#include "stretto/strategy/strategy.h"
#include "stretto/text/tokenizer_files.h"
#include "stretto/weights/export.h"
#include "stretto/weights/pickle.h"

namespace stretto {
namespace {

using Mistakes = std::vector<Mistake>;

void add_recipes(Mistakes& all) {
  const auto add = [&](const char* name, const std::string& yaml, const std::vector<std::string>& set = {}) {
    all.push_back({std::string("recipe: ") + name, [=] { parse_recipe(yaml, "r.yaml", set); }});
  };
  const std::string task = "task: text-classification\n";
  add("--set: not a number", task, {"optimizer.lr=abc"});
  add("--set: an unknown section", task, {"optimiser.lr=1"});
  add("--set: an unknown key", task, {"optimizer.lrr=null"});
  add("--set: a value for a section", task, {"optimizer=AdamW"});
  add("--set: a key without its section", task, {"lr=1e-3"});
  add("a key of another optimizer", "optimizer:\n  momentum: 0.9\n");
  add("an unknown optimizer", "optimizer:\n  type: AdamX\n");
  add("a section of another task", "data: {}\ntoken_classification:\n  stride: 8\n");
  add("--set: a section of another task", "task: token-classification\n",
      {"question_answering.doc_stride=8"});
  add("not UTF-8", "output: runs/\xff\n");
  add("strategy and precision contradict", "training:\n  precision: fp32\n  strategy: ddp-bf16\n");
  add("a key of another strategy", "training:\n  strategy: fsdp\n  dp_shard: 2\n");
  add("a strategy that is not available", "training:\n  strategy: fsdp2\n");
  add("fp16", "training:\n  precision: 16-mixed\n");
  add("bf16-true", "training:\n  precision: bf16-true\n");
  add("an unknown precision", "training:\n  precision: bf61\n");
  add("out of range", "training:\n  epochs: 0\n");
  add("an unknown key", "training:\n  epoch: 2\n");
  add("a key that occurs twice", "output: a\noutput: b\n");
  add("tabs in the indentation", "training:\n\tepochs: 2\n");
  add("a list for a text", "output: [a]\n");
  add("a variable that is not set", "output: ${STRETTO_NO_SUCH_VARIABLE}\n");
}

void add_strategies(Mistakes& all) {
  for (const char* name : {"horovod", "ddp-fp16", "ddp-bf61", "ddp-bf16-cpu", ""})
    all.push_back({fmt::format("strategy: \"{}\"", name), [name] { parse_strategy(name); }});
}

void add_rows(Mistakes& all) {
  using data::ReadOptions;
  static const data::LabelSet classes({"NEGATIVE", "POSITIVE"});
  const auto add = [&](const char* name, const char* file, const std::string& content,
                       const ReadOptions& options = {}) {
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
  add("semicolons", "a.csv", "Text;Label\ngood;1\n");
  add("not UTF-8", "a.csv", "text,label\na,1\ncaf\xe9,0\n");
  add("a NUL byte", "a.tsv", std::string("good\t1\nb\0d\t0\n", 13));
  add("not a number for a regression", "a.csv", "text,label\na,1\nb,good\n",
      {.label_kind = data::LabelKind::number});
  add("an unknown one of several classes", "a.csv", "text,label\na,\"POSITIVE,POSITIV\"\n",
      {.label_kind = data::LabelKind::classes, .labels = &classes});
}

void add_corpora(Mistakes& all) {
  using corpus::TaggedOptions;
  const auto tagged = [&](const char* name, const char* file, const std::string& content,
                          const TaggedOptions& options = {}) {
    all.push_back({std::string("tagged: ") + name, [=] { corpus::parse_tagged(content, file, options); }});
  };
  tagged("a column that is not there", "a.conll", "a\tO\n", {.tag = "3"});
  tagged("no tags", "a.conll", "a\nb\n", {.require_tags = true});
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

void add_tokenizers(Mistakes& all) {
  static const nlohmann::json none = nlohmann::json::object();  // no tokenizer_config.json
  const auto vocabulary = [&](const char* name, const std::string& lines) {
    all.push_back({std::string("vocab.txt: ") + name,
                   [=] { text::parse_vocabulary(lines, "vocab.txt", none, "", {.lowercase = true}); }});
  };
  vocabulary("empty", "");
  vocabulary("no [UNK]", "[PAD]\n[CLS]\n[SEP]\na\n");
  const auto json = [&](const char* name, const std::string& content) {
    all.push_back({std::string("tokenizer.json: ") + name, [=] {
                     text::parse_tokenizer_json(parse_json(content, "tokenizer.json"), "tokenizer.json", none,
                                                "", {});
                   }});
  };
  json("no model", "{}");
  json("a vocabulary without [UNK]", R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})");
  json("an unknown model", R"({"model": {"type": "CharLevel", "vocab": {}}})");
  json("an unknown normalizer",
       R"({"normalizer": {"type": "Upper"}, "model": {"type": "WordPiece", "vocab": {"[UNK]": 0}}})");
}

void add_checkpoints(Mistakes& all) {
  const auto manifest = [&](const char* name, const std::string& content) {
    all.push_back({std::string("manifest: ") + name,  //
                   [=] { checkpoint_format::parse_manifest(content, "manifest.json"); }});
  };
  manifest("no object", "[]");
  manifest("another JSON", "{}");
  const auto pickle = [&](const char* name, const std::string& content) {
    all.push_back({std::string("pickle: ") + name,  //
                   [=] { weights::read_pickled_tensors(content, "model.bin"); }});
  };
  pickle("code",
         "\x80\x02"
         "cos\nsystem\n.");
  pickle("cut short", "");
  pickle("no dictionary", "\x80\x02].");
  all.push_back(
      {"export: no checkpoint", [] { weights::export_model("/no/such/step-00000003", "/no/such/model"); }});
}

}  // namespace

std::vector<Mistake> mistakes() {
  Mistakes all;
  add_recipes(all);
  add_strategies(all);
  add_rows(all);
  add_corpora(all);
  add_tokenizers(all);
  add_checkpoints(all);
  return all;
}

}  // namespace stretto
