#include <algorithm>
#include <cmath>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"

// Tests `stretto predict` with a newly trained model.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Predict : public ::testing::Test {
 protected:
  void SetUp() override {
    workspace_.train("run", 1, "training.precision=fp32 optimizer.lr=0.005 training.epochs=8");
  }

  std::string command(const std::string& arguments) const {
    return std::string("OMP_NUM_THREADS=1 ") + STRETTO_PROGRAM + " predict --model " +
           workspace_.path("run/model") + " " + arguments;
  }
  std::vector<nlohmann::json> predict(const std::string& arguments) const {
    const ShellResult result = shell(command(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_json_lines(result.out);
  }

  Workspace workspace_;
};

TEST_F(Predict, TextsAndLinesGiveTheSameResults) {
  workspace_.write("lines", "the film is good and witty\n\nthe plot was dull");
  const auto lines = predict("< " + workspace_.path("lines"));
  const auto texts = predict("--text 'the film is good and witty' --text '' --text='the plot was dull'");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines, texts);
  EXPECT_EQ(lines[0]["text"], "the film is good and witty");
  EXPECT_EQ(lines[1]["text"], "");
  EXPECT_EQ(lines[0]["label"], "LABEL_1");
  EXPECT_EQ(lines[2]["label"], "LABEL_0");
  EXPECT_GT(lines[0]["score"], 0.5);
}

TEST_F(Predict, LogitsScoresAndLabelsAgree) {
  const std::string texts = "--text 'the film is good' --text 'the plot was bleak and cold'";
  const auto labels = predict(texts), scores = predict(texts + " --output scores"),
             logits = predict(texts + " --output logits");
  for (size_t i = 0; i < 2; ++i) {
    const double a = logits[i]["logits"][0], b = logits[i]["logits"][1];
    const double second = 1 / (1 + std::exp(a - b));
    EXPECT_NEAR(scores[i]["scores"]["LABEL_1"], second, 1e-12);
    EXPECT_NEAR(scores[i]["scores"]["LABEL_0"], 1 - second, 1e-12);
    EXPECT_EQ(labels[i]["label"], b > a ? "LABEL_1" : "LABEL_0");
    EXPECT_NEAR(labels[i]["score"], std::max(second, 1 - second), 1e-12);
  }
}

// Scores do not depend on which texts are batched together, and equal those of `stretto test`.
TEST_F(Predict, AgreesWithTest) {
  workspace_.write("test.tsv", "sentence\nthe film is good\nthe plot was dull and stale\na scene\n");
  workspace_.write("lines", "the film is good\nthe plot was dull and stale\na scene\n");
  ASSERT_EQ(workspace_.run("test", 1, "data.test=" + workspace_.path("test.tsv")).exit_code, 0);
  const auto tested = read_json_lines(workspace_.read("run/predictions.jsonl"));
  for (const std::string batch : {"1", "2", "32"}) {
    const auto predicted =
        predict("--precision fp64 --batch-size " + batch + " < " + workspace_.path("lines"));
    ASSERT_EQ(predicted.size(), tested.size());
    for (size_t i = 0; i < tested.size(); ++i) {
      EXPECT_EQ(predicted[i]["label"], tested[i]["label"]);
      EXPECT_NEAR(predicted[i]["score"], tested[i]["score"], 1e-6);
    }
  }
}

TEST_F(Predict, AnyBytesAreAccepted) {
  workspace_.write("lines", std::string("a \xff\xfe film\n\xc3\n\0zero\nlast \xe2\x82", 25));
  const auto records = predict("< " + workspace_.path("lines"));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0]["text"], "a \uFFFD\uFFFD film");
  for (const auto& record : records) EXPECT_TRUE(record["score"].is_number());
}

TEST_F(Predict, LinesOfAnyLengthUpToALimit) {
  const std::string words(200'000, 'a');
  workspace_.write("lines",
                   words + "\n" + std::string(65'535, 'b') + "\n" + std::string(65'536, 'c') + "\n\nd");
  const auto records = predict("< " + workspace_.path("lines"));
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0]["text"], words);
  EXPECT_EQ(records[1]["text"].get<std::string>().size(), 65'535u);
  EXPECT_EQ(records[2]["text"].get<std::string>().size(), 65'536u);
  EXPECT_EQ(records[4]["text"], "d");
  const ShellResult endless = shell(command("< /dev/zero"));
  EXPECT_EQ(endless.exit_code, 2);
  EXPECT_THAT(endless.err, has_all("standard input:1:", "16 MiB"));
}

TEST_F(Predict, ControlCharactersDoNotReachTheTerminal) {
  workspace_.write("lines",
                   "a \x1b[31m \x7f \xc2\x9b"
                   "31m film\n");
  const ShellResult result = shell(command("< " + workspace_.path("lines")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("\\u001b[31m"), HasSubstr("\\u007f"), HasSubstr("\\u009b31m")));
  EXPECT_EQ(read_json_lines(result.out).at(0)["text"],
            "a \x1b[31m \x7f \xc2\x9b"
            "31m film");
}

TEST_F(Predict, LongTextsAreTruncatedToTheModelsMaximum) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "good ";
  EXPECT_EQ(predict("--text '" + text + "'").size(), 1u);
}

// The config.json of the model states that it was trained on pairs.
TEST_F(Predict, AModelOfPairsNeedsBothTexts) {
  workspace_.write("pairs.tsv",
                   "text\ttext_pair\tlabel\ngood film\twitty\t1\ndull plot\tstale\t0\ngood story\twarm\t1\n"
                   "bad end\tcold\t0\n");
  const std::string data =
      " data.train=" + workspace_.path("pairs.tsv") + " data.validation=" + workspace_.path("pairs.tsv");
  ASSERT_EQ(
      workspace_.run("train", 1, "training.epochs=1" + data + " output=" + workspace_.path("run")).exit_code,
      0);
  const ShellResult single = shell(command("--text 'good film'"));
  EXPECT_EQ(single.exit_code, 2);
  EXPECT_THAT(single.err, has_all("--text 1:", "one text", "tab"));
  const auto records = predict("--text \"$(printf 'good film\\twitty')\"");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["text"], "good film");
  EXPECT_EQ(records[0]["text_pair"], "witty");
}

TEST_F(Predict, InputsOfFilesGiveTheResultsOfLines) {
  workspace_.write("lines.txt", "the film is good\nthe plot was dull\n");
  workspace_.write("lines.jsonl",
                   "\"the film is good\"\n\n{\"text\": \"the plot was dull\", \"label\": 0}\n");
  workspace_.write("lines.json", "{\"inputs\": [\"the film is good\",\n\"the plot was dull\"]}");
  const auto wanted = predict("< " + workspace_.path("lines.txt"));
  ASSERT_EQ(wanted.size(), 2u);
  for (const char* name : {"lines.txt", "lines.jsonl", "lines.json"})
    EXPECT_EQ(predict("--input " + workspace_.path(name)), wanted) << name;
  EXPECT_EQ(predict("--input - < " + workspace_.path("lines.txt")), wanted);
  EXPECT_EQ(predict("--input-format jsonl < " + workspace_.path("lines.jsonl")), wanted);
  const ShellResult as_text = shell("echo '{\"text\": \"good\"}' | " + command(""));
  EXPECT_EQ(read_json_lines(as_text.out).at(0)["text"], "{\"text\": \"good\"}");
  EXPECT_THAT(as_text.err, has_all("standard input:1:", "this is JSON", "--input-format jsonl"));
  EXPECT_EQ(predict("--input-format json --input - < " + workspace_.path("lines.json")), wanted);
}

TEST_F(Predict, LinesBeforeABadOneArePredicted) {
  workspace_.write("bad.jsonl", "\"good\"\n\"dull\"\n{\"txt\": \"stale\"}\n\"warm\"\n");
  for (const std::string batch : {"1", "2", "32"}) {
    const ShellResult result =
        shell(command("--batch-size " + batch + " --input " + workspace_.path("bad.jsonl")));
    EXPECT_EQ(result.exit_code, 2);
    const auto records = read_json_lines(result.out);
    ASSERT_EQ(records.size(), 2u) << batch;
    EXPECT_EQ(records[1]["text"], "dull");
    EXPECT_THAT(result.err, has_all("stretto: error: " + workspace_.path("bad.jsonl") + ":3:", "\"txt\"",
                                    "did you mean \"text\"?"));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
  workspace_.write("bad.json", "[\"good\",\n4]");
  const ShellResult whole = shell(command("--input " + workspace_.path("bad.json")));
  EXPECT_EQ(whole.out, "");
  EXPECT_THAT(whole.err, has_all("bad.json:2:", "number"));
}

TEST_F(Predict, TheBestClassesWithTheirScores) {
  const auto scores = predict("--text 'good film' --output scores")[0]["scores"];
  const auto both = predict("--text 'good film' --top-k all")[0],
             one = predict("--text 'good film' --top-k 1")[0];
  ASSERT_EQ(both["classes"].size(), 2u);
  EXPECT_EQ(both["classes"][0], (nlohmann::json{{"label", "LABEL_1"}, {"score", scores["LABEL_1"]}}));
  EXPECT_EQ(both["classes"][1], (nlohmann::json{{"label", "LABEL_0"}, {"score", scores["LABEL_0"]}}));
  EXPECT_EQ(one["classes"], nlohmann::json::array({both["classes"][0]}));
  EXPECT_EQ(predict("--text 'good film' --output pipeline --top-k 2")[0], both["classes"]);
  EXPECT_EQ(predict("--text 'good film' --output pipeline")[0], both["classes"][0]);
}

// The folder has no weights: options are checked before they are read.
TEST_F(Predict, OptionsThatDoNotApplyAreRefusedFirst) {
  std::filesystem::remove(workspace_.path("run/model/model.safetensors"));
  const auto refusal = [&](const std::string& arguments) {
    const ShellResult result = shell(command(arguments));
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    return result.err;
  };
  const std::string folder = workspace_.path("run/model");
  const std::string task = folder + " does text-classification\n";
  EXPECT_THAT(refusal("--text x --aggregation-strategy first"),
              has_all("--aggregation-strategy is for token-classification", task));
  EXPECT_THAT(refusal("--text x --split-into-words"),
              has_all("--split-into-words is for token-classification", task));
  EXPECT_THAT(refusal("--text x --output scores --top-k 2"),
              has_all("--top-k applies to --output label and pipeline", "--output scores"));
  EXPECT_THAT(refusal("--text x --handle-impossible-answer"),
              has_all("--handle-impossible-answer is for question-answering", task));
  EXPECT_THAT(refusal("--text x --top-k 0"), has_all("\"0\"", "from 1 to 1000, or all"));
  EXPECT_THAT(refusal("--text x --input y"), HasSubstr("--input and --text exclude one another"));
  EXPECT_THAT(refusal("--input " + workspace_.path("none.txt")), has_all("none.txt:", "no such file"));
  EXPECT_THAT(refusal("--input " + workspace_.path("run")), has_all("run:", "folder"));
  workspace_.write("table.csv", "text\nx\n");
  EXPECT_THAT(refusal("--input " + workspace_.path("table.csv")),
              has_all("table.csv: .csv", "text per line"));
  EXPECT_THAT(refusal("--text x"), HasSubstr("model.safetensors"));
}

TEST_F(Predict, NoInputGivesNoOutput) { EXPECT_THAT(predict("< /dev/null"), IsEmpty()); }

TEST_F(Predict, RunFolderInPlaceOfItsModel) {
  const ShellResult result =
      shell(std::string(STRETTO_PROGRAM) + " predict --text x --model " + workspace_.path("run"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("run: there is no config.json in it"),
                                HasSubstr("such as " + workspace_.path("run/model"))));
}

TEST_F(Predict, AClosedPipeEndsTheProgramQuietly) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "the film is good\n";
  workspace_.write("lines", lines);
  const ShellResult result = shell(command("< " + workspace_.path("lines")) + " | head -1");
  EXPECT_EQ(read_json_lines(result.out).size(), 1u);
  EXPECT_EQ(result.err, "");
}

TEST_F(Predict, InputThatCannotBeReadIsReportedWithItsReason) {
  for (const auto& [input, reason] :
       {std::pair("< " + workspace_.path("run"), "Is a directory"), {"<&-", "Bad file descriptor"}}) {
    const ShellResult result = shell(command(input));
    EXPECT_EQ(result.exit_code, 1) << input;
    EXPECT_THAT(result.err, HasSubstr(fmt::format("error: standard input: cannot read: {}", reason)));
  }
}

TEST_F(Predict, OutputThatCannotBeWrittenIsReportedWithItsReason) {
  for (const auto& [where, reason] :
       {std::pair("> /dev/full", "No space left on device"), {">&-", "Bad file descriptor"}}) {
    const ShellResult result = shell(command("--text 'good film' ") + where);
    EXPECT_EQ(result.exit_code, 1) << where;
    EXPECT_THAT(result.err, HasSubstr(fmt::format("error: cannot write to standard output: {}", reason)));
  }
}

TEST(PredictRefuses, FoldersWithoutAClassifier) {
  const Workspace workspace;
  const auto refusal = [&](const std::string& arguments, int exit_code) {
    const ShellResult result = shell(std::string(STRETTO_PROGRAM) + " predict " + arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    return result.err;
  };
  EXPECT_THAT(refusal("--text x", 2), HasSubstr("--model is required"));
  EXPECT_THAT(refusal("--text x --model " + workspace.path("none"), 2),
              HasSubstr("stretto: error: --model " + workspace.path("none") +
                        ": there is no such folder; expected a model folder"));
  EXPECT_THAT(refusal("--text x --model " + workspace.path("model"), 2),
              AllOf(HasSubstr(workspace.path("model/config.json")), HasSubstr("expected a fine-tuned one")));
  EXPECT_THAT(refusal("--text x --output label,logits --model m", 2), HasSubstr("--output"));
}

}  // namespace
}  // namespace stretto
