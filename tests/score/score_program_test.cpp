#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

// Tests of the command `stretto score`; score_test.py compares its numbers with the reference tools.
namespace stretto {
namespace {

using ::testing::HasSubstr;

class ScoreProgram : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    write_file_atomic(folder_.path() / name, content);
    return folder_.path() / name;
  }
  static ShellResult score(const std::string& arguments) {
    return shell(std::string(STRETTO_PROGRAM) + " score " + arguments);
  }
  static std::string error(const std::string& arguments) {
    const ShellResult result = score(arguments);
    EXPECT_NE(result.exit_code, 0) << arguments;
    EXPECT_EQ(result.out, "");
    return result.err;
  }

  TempFolder folder_;
};

TEST_F(ScoreProgram, OneJsonObject) {
  const std::string conll = write("a.conll", "EU NNP B-ORG B-ORG\nand CC O B-ORG\n");
  const ShellResult result = score("seqeval " + conll);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("overall_precision"), 0.5);
  EXPECT_EQ(nlohmann::json::parse(score("seqeval --mode conlleval " + conll).out).at("precision"), 50.0);
}

TEST_F(ScoreProgram, ATableOfTheTypes) {
  const std::string conll = write("a.conll", "EU NNP B-ORG B-ORG\nand CC O B-PER\n"),
                    none = write("none.conll", "and O O\n");
  const ShellResult result = score("seqeval --table " + conll);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "class                     precision    recall        f1   support\n"
            "ORG                          1.0000    1.0000    1.0000         1\n"
            "PER                          0.0000    0.0000    0.0000         0\n"
            "micro avg                    0.5000    1.0000    0.6667         1\n"
            "macro avg                    0.5000    0.5000    0.5000         1\n"
            "weighted avg                 1.0000    1.0000    1.0000         1\n");
  EXPECT_THAT(score("seqeval --mode strict --scheme IOB2 --table " + conll).out, HasSubstr("ORG  "));
  EXPECT_THAT(score("seqeval --table " + none).out, HasSubstr("micro avg"));
  EXPECT_THAT(error("seqeval --table --mode conlleval " + conll), has_all("--table:", "--mode default"));
}

TEST_F(ScoreProgram, LabelsOfManyFileFormats) {
  const std::string gold = write(
                        "gold.jsonl",
                        "{\"line\": 2, \"label\": \"x\", \"gold\": \"1\"}\n{\"line\": 3, \"gold\": 0}\n"),
                    plain = write("plain.txt", "positive\n0\n"),
                    cola = write("cola.tsv", "g1\t1\t\tA.\ng2\t0\t*\tB.\n");
  EXPECT_EQ(nlohmann::json::parse(score("glue sst2 " + gold + " " + plain).out).at("accuracy"), 1.0);
  EXPECT_EQ(
      nlohmann::json::parse(score("glue sst2 --gold-column 2 " + cola + " " + plain).out).at("accuracy"),
      1.0);
  const std::string unnamed =
      write("predictions.jsonl", "{\"label\": \"LABEL_1\"}\n{\"label\": \"LABEL_0\"}\n");
  EXPECT_EQ(nlohmann::json::parse(score("glue sst2 " + gold + " " + unnamed).out).at("accuracy"), 1.0);
  EXPECT_THAT(error("glue cola " + cola + " " + plain), has_all("cola.tsv", "--gold-column"));
}

TEST_F(ScoreProgram, Mistakes) {
  const std::string one = write("one.conll", "EU\nand\n"), two = write("two.conll", "EU X-ORG B-ORG\n"),
                    list = write("list.json", "[]"), numbers = write("numbers.json", "{\"1\": 2}"),
                    squad = write("squad.json",
                                  "{\"data\": [{\"id\": \"1\", \"context\": \"c\", \"question\": \"q\"}]}");
  EXPECT_THAT(error("seqeval " + one), has_all("one.conll:", "one column", "gold and the predicted"));
  EXPECT_THAT(error("seqeval --mode strict " + two),
              has_all("error: " + two + ": \"X-ORG\"", "O or one of I-, B-"));
  EXPECT_THAT(error("seqeval --scheme IOB2 " + two), has_all("--scheme", "--mode strict"));
  EXPECT_THAT(error("seqeval --mode strict --scheme IBO " + two),
              has_all("\"IBO\"", "IOB1, IOB2, IOE1, IOE2, IOBES, BILOU"));
  EXPECT_THAT(error("seqeval " + folder_.path().string() + "/none"), has_all("/none:", "No such file"));
  EXPECT_THAT(error("squad " + squad + " " + list), has_all("list.json:", "JSON array", "object"));
  EXPECT_THAT(error("squad " + squad + " " + numbers),
              has_all("numbers.json:", "question 1 ", "JSON number"));
  EXPECT_THAT(error("squad " + squad + " " + squad), has_all("squad.json:", "question data ", "JSON array"));
  EXPECT_THAT(error("squad --na-prob-thresh 2 " + squad + " " + numbers), HasSubstr("--na-prob-thresh"));
  EXPECT_THAT(error("glue nli " + one + " " + one), has_all("\"nli\"", "did you mean \""));
  EXPECT_THAT(error("glue rte " + one + " " + one), has_all("gold label 1:", "\"EU\"", "one of entailment"));
  const std::string three = write("three.txt", "LABEL_3\n");
  EXPECT_THAT(error("glue mnli " + three + " " + three),
              has_all("gold label 1:", "\"LABEL_3\"", "one of entailment"));
  EXPECT_THAT(error("sqaud"), HasSubstr("sqaud"));
  EXPECT_THAT(error("seqeval " + two + " > /dev/full"), HasSubstr("No space left"));
}

// The type of a tag follows its first character, which may have several bytes.
TEST_F(ScoreProgram, TagsThatBeginWithAnyCharacter) {
  const std::string file =
      write("french.conll", "a \u00c9X \u00c9-Y\nb B-\u00c9 B-\u00c9\nc \u00c9 O\nd B\u00c9-Z O\n");
  for (const char* mode : {"default", "conlleval"}) {
    const ShellResult result = score(std::string("seqeval --mode ") + mode + " " + file);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(nlohmann::json::parse(result.out).is_object());
  }
  const auto scores = nlohmann::json::parse(score("seqeval " + file).out);
  for (const char* type : {"X", "Y", "\u00c9", "Z"}) EXPECT_TRUE(scores.contains(type)) << type;
  EXPECT_THAT(score("seqeval --table " + file).out, HasSubstr("\nX "));
  EXPECT_THAT(error("seqeval --mode strict " + file),
              has_all("error: " + file + ": \"\u00c9X\"", "O or one of I-, B-"));
}

TEST_F(ScoreProgram, FilesAreUtf8) {
  const std::string bad = "byte 0xc3 is not UTF-8; save the file as UTF-8\n", good = write("good.txt", "1\n"),
                    squad = R"({"data": [{"id": "1", "context": "c", "question": "q"}]})";
  const auto is_refused = [&](const std::string& arguments, const std::string& place) {
    const ShellResult result = score(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(place));
  };
  is_refused("seqeval " + write("a.conll", "a O O\nb \u00c9-\xc3 O\n"), "a.conll:2: " + bad);
  is_refused("glue sst2 " + write("gold.tsv", "label\n1\n\xc3\n") + " " + good, "gold.tsv:3: " + bad);
  is_refused("glue sst2 " + good + " " + write("guess.jsonl", "{\"label\": \"\xc3\"}\n"),
             "guess.jsonl:1: " + bad);
  is_refused("squad " + write("data.json", "{\"data\":\n[\"\xc3\"]}") + " " + good, "data.json:2: " + bad);
  const std::string questions = write("squad.json", squad), answers = write("answers.json", R"({"1": ""})"),
                    not_utf8 = write("not_utf8.json", "{\"1\":\n \"\xc3\"}");
  is_refused("squad " + questions + " " + not_utf8, "not_utf8.json:2:");
  is_refused("squad --na-prob " + not_utf8 + " " + questions + " " + answers, "not_utf8.json:2:");
}

// The numbers are those of the reference tools, which warn of these files too.
TEST_F(ScoreProgram, ImplausibleColumnsAreWarnedOf) {
  const ShellResult words = score("seqeval " + write("words.conll", "Vienna B-LOC\nis O\n"));
  EXPECT_EQ(words.exit_code, 0);
  EXPECT_THAT(words.err, has_all("words.conll:", "\"Vienna\"", "neither O nor"));
  EXPECT_EQ(score("seqeval " + write("good.conll", "a B-LOC B-LOC\nb O I-LOC\n")).err, "");
  const std::string squad = write(
      "one.json",
      R"({"data":[{"paragraphs":[{"context":"a b","qas":[{"id":"7","question":"q","answers":[{"text":"a","answer_start":0}]}]}]}]})");
  const ShellResult unanswered = score("squad " + squad + " " + write("none.json", R"({"8":"a"})"));
  EXPECT_EQ(unanswered.exit_code, 0);
  EXPECT_THAT(unanswered.err, has_all("none.json:", "1 of 1 questions", "the first is 7"));
  EXPECT_EQ(score("squad " + squad + " " + write("all.json", R"({"7":"a"})")).err, "");
}

}  // namespace
}  // namespace stretto
