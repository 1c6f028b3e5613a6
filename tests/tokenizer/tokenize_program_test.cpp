#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"

// Tests of the command `stretto tokenize`.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::string golden = GOLDEN_TOKENIZERS;

class TokenizeProgram : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    const auto path = folder_.path() / name;
    write_file_atomic(path, content);
    return path;
  }

  // Runs the program with these arguments and `input` as its standard input.
  ShellResult tokenize(const std::string& arguments, const std::string& input) const {
    return shell(command(arguments) + " < " + write("input.txt", input));
  }

  static std::string command(const std::string& arguments) {
    return std::string(STRETTO_PROGRAM) + " tokenize " + arguments;
  }

  // Runs with a tokenizer that cannot be loaded.
  std::string refusal(const std::string& tokenizer) const {
    const ShellResult result = tokenize("--tokenizer " + tokenizer, "the map\n");
    EXPECT_EQ(result.exit_code, 2) << tokenizer;
    EXPECT_EQ(result.out, "");
    return result.err;
  }

  TempFolder folder_;
};

// A vocabulary where the words of one sentence have the ids that they have in bert-base-uncased.
std::string sparse_vocabulary() {
  const std::map<int, std::string> words = {
      {0, "[PAD]"},    {100, "[UNK]"}, {101, "[CLS]"},      {102, "[SEP]"}, {103, "[MASK]"},
      {1029, "?"},     {1996, "the"},  {1999, "in"},        {2003, "is"},   {2073, "where"},
      {2088, "world"}, {4949, "map"},  {26779, "himalayas"}};
  std::string lines;
  for (int id = 0; id < 30522; ++id) {
    const auto word = words.find(id);
    lines += word == words.end() ? "[unused" + std::to_string(id) + "]\n" : word->second + "\n";
  }
  return lines;
}

constexpr const char* himalayas = "where is Himalayas in the world map?";
constexpr const char* himalayas_ids = "101 2073 2003 26779 1999 1996 2088 4949 1029 102\n";

TEST_F(TokenizeProgram, PrintsIds) {
  write("vocab.txt", sparse_vocabulary());
  const ShellResult result = tokenize("--tokenizer " + folder_.path().string(), himalayas);
  EXPECT_EQ(result.out, himalayas_ids);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("vocab.txt: treated as uncased"));
}

TEST_F(TokenizeProgram, PrintsIdsOfBertBase) {
  const char* data = std::getenv("STRETTO_DATA");
  if (data == nullptr) GTEST_SKIP() << "STRETTO_DATA is not set";
  const std::string tokenizer = std::string(data) + "/tokenizers/bert-base-uncased";
  EXPECT_EQ(tokenize("--tokenizer " + tokenizer, himalayas).out, himalayas_ids);
  EXPECT_EQ(tokenize("--tokenizer " + tokenizer + "/vocab.txt", himalayas).out, himalayas_ids);
}

TEST_F(TokenizeProgram, PrintsTokensOrOffsets) {
  const std::string uncased = "--tokenizer " + golden + "/uncased.txt ";
  const std::string text = "Na\u00efve films\n";
  EXPECT_EQ(tokenize(uncased + "--tokens", text).out, "[CLS] naive film ##s [SEP]\n");
  EXPECT_EQ(tokenize(uncased + "--offsets", text).out, "0:0 0:5 6:10 10:11 0:0\n");
  EXPECT_EQ(tokenize(uncased + "--ids", text).out, tokenize(uncased, text).out);
  EXPECT_EQ(tokenize(uncased + "--tokens --no-special", text).out, "naive film ##s\n");
  EXPECT_EQ(tokenize(uncased + "--tokens --max-length 3", text).out, "[CLS] naive [SEP]\n");
  EXPECT_EQ(tokenize(uncased + "--tokens --max-length 2 --no-special", text).out, "naive film\n");
}

TEST_F(TokenizeProgram, EveryFamilyPrintsIdsTokensOffsetsAndText) {
  const std::string text = "hello, the map it's caf\u00e9\n";
  const std::map<std::string, std::string> first_tokens = {
      {"gpt2", "\u0120"}, {"roberta", "<s> h"}, {"unigram", "\u2581"}, {"xlm_roberta", "<s> \u2581"}};
  for (const auto& [family, begin] : first_tokens) {
    SCOPED_TRACE(family);
    const std::string tokenizer = "--tokenizer " + golden + "/" + family + " ";
    EXPECT_THAT(tokenize(tokenizer + "--tokens", text).out, ::testing::StartsWith(begin));
    const std::string ids = tokenize(tokenizer + "--ids", text).out;
    const std::string offsets = tokenize(tokenizer + "--offsets", text).out;
    EXPECT_EQ(std::count(offsets.begin(), offsets.end(), ' '), std::count(ids.begin(), ids.end(), ' '));
    const std::string decoded = tokenize(tokenizer + "--decode --no-special", ids).out;
    EXPECT_EQ(decoded, family == "gpt2" ? " " + text : text);
    std::string many;
    std::string many_ids;
    for (int i = 0; i < 2000; ++i) {
      many += text;
      many_ids += ids;
    }
    EXPECT_EQ(tokenize(tokenizer + "--threads 3", many).out, many_ids);
  }
}

TEST_F(TokenizeProgram, InvalidIdsAreReported) {
  const std::string arguments = "--tokenizer " + golden + "/roberta --decode";
  const ShellResult word = tokenize(arguments, "0 1\n0 x\n");
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_THAT(word.err, has_all("standard input:2:", "\"x\"", "from 0 to 449 "));
  EXPECT_THAT(tokenize(arguments, "99999").err, has_all("standard input:1:", "\"99999\""));
  EXPECT_EQ(tokenize(arguments, "\n0  2 \r\n").out, "\n<s></s>\n");
}

TEST_F(TokenizeProgram, DoesNotTruncateByDefault) {
  std::string line;
  for (int i = 0; i < 5000; ++i) line += "the map ";
  const std::string ids = tokenize("--tokenizer " + golden + "/added.json", line).out;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), ' '), 10001);
}

TEST_F(TokenizeProgram, LowercaseOverridesTheVocabulary) {
  const std::string cased = "--tokenizer " + golden + "/cased.txt --tokens --no-special ";
  EXPECT_EQ(tokenize(cased, "The Caf\u00e9\n").out, "The C ##a ##f ##\u00e9\n");
  EXPECT_EQ(tokenize(cased + "--lowercase", "The Caf\u00e9\n").out, "the cafe\n");
  const std::string uncased = "--tokenizer " + golden + "/uncased.txt --tokens --no-special ";
  EXPECT_EQ(tokenize(uncased + "--no-lowercase", "the The\n").out, "the [UNK]\n");
}

TEST_F(TokenizeProgram, OneLineOfOutputForEachLineOfInput) {
  const std::string arguments = "--tokenizer " + golden + "/uncased.txt --tokens --no-special ";
  EXPECT_EQ(tokenize(arguments, "").out, "");
  EXPECT_EQ(tokenize(arguments, "\n").out, "\n");
  EXPECT_EQ(tokenize(arguments, "the\n\nmap").out, "the\n\nmap\n");
  // None of these ends a line: carriage return, vertical tab, form feed, U+0085, U+2028.
  EXPECT_EQ(tokenize(arguments, "the\r\nmap \r the\v\f\u0085 map\u2028the\n").out, "the\nmap the map the\n");
  EXPECT_EQ(tokenize(arguments, std::string("a\0b\n", 4)).out, "a ##b\n");
}

TEST_F(TokenizeProgram, ReadsAFile) {
  const std::string file = write("text.txt", "the map\n");
  EXPECT_EQ(shell(command("--tokenizer " + golden + "/uncased.txt --tokens " + file)).out,
            "[CLS] the map [SEP]\n");
  const ShellResult missing = shell(command("--tokenizer " + golden + "/added.json no-such-file"));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, MatchesRegex("stretto: error: no-such-file: [^\n]*No such file or directory\n"));
}

TEST_F(TokenizeProgram, InvalidUtf8IsReplacedLikePythonDoes) {
  const std::string arguments = "--tokenizer " + golden + "/options.json --no-special --offsets ";
  // This tokenizer keeps U+FFFD, so the offsets show how many there are.
  EXPECT_EQ(tokenize(arguments, "\xe4\xb8 a\n\xff\xfe a\n\xed\xa0\x80 a\n").out,
            "0:1 2:3\n0:2 3:4\n0:3 4:5\n");
}

TEST_F(TokenizeProgram, LinesMaySpanReads) {
  const std::string line = "na\u00efve \u4e2d\u56fd caf\u00e9\n";
  const std::string arguments = "--tokenizer " + golden + "/uncased.txt --tokens";
  const std::string expected = tokenize(arguments, line).out;
  std::string many;
  for (int i = 0; i < 30000; ++i) many += line;
  const std::string output = tokenize(arguments, many).out;
  ASSERT_EQ(output.size(), 30000 * expected.size());
  for (size_t at = 0; at < output.size(); at += expected.size()) {
    ASSERT_EQ(output.compare(at, expected.size(), expected), 0) << "line " << at / expected.size() + 1;
  }
  EXPECT_EQ(shell("(printf 'the ma'; sleep 0.1; printf 'p\\nthe') | " + command(arguments)).out,
            "[CLS] the map [SEP]\n[CLS] the [SEP]\n");
}

TEST_F(TokenizeProgram, AnEndlessLineIsRefused) {
  const ShellResult result = shell(command("--tokenizer " + golden + "/added.json < /dev/zero"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, MatchesRegex("stretto: error: standard input:1: [^\n]*16 MiB[^\n]*\n"));
}

TEST_F(TokenizeProgram, AClosedPipeEndsTheProgramQuietly) {
  const std::string endless = "yes the map | " + command("--tokenizer " + golden + "/added.json --tokens");
  const ShellResult result = shell(endless + " | head -n 2");
  EXPECT_EQ(result.out, "[CLS] the map [SEP]\n[CLS] the map [SEP]\n");
  EXPECT_EQ(result.err, "");
  const ShellResult signal_ignored =
      shell("trap '' PIPE; (" + command("--tokenizer " + golden + "/added.json --tokens") + " < " +
            write("input.txt", std::string(1 << 20, '\n')) + "; echo ended with $? >&2) | true");
  EXPECT_EQ(signal_ignored.err, "ended with 0\n");
}

TEST_F(TokenizeProgram, AFullDiskIsReported) {
  const ShellResult result =
      shell("echo the map | " + command("--tokenizer " + golden + "/added.json") + " > /dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, MatchesRegex("stretto: error: standard output: [^\n]*No space left on device\n"));
}

TEST_F(TokenizeProgram, BadTokenizersAreReported) {
  const std::string folder = folder_.path();
  EXPECT_THAT(refusal("no-such-folder"), has_all("no-such-folder:", "no such file or folder", "tokenizer"));
  EXPECT_THAT(refusal(folder), has_all(folder + ":", "tokenizer.json, vocab.txt"));
  EXPECT_THAT(refusal(write("cut.json", "{\n  \"model\": {\"vocab\":\n")),
              AllOf(HasSubstr("cut.json:3:1: not valid JSON"), HasSubstr("unexpected end of input")));
  EXPECT_THAT(refusal(write("other.json", R"({"model": {"type": "CharLevel", "vocab": {}}})")),
              has_all("other.json: model.type:", "CharLevel", "WordPiece, BPE, Unigram and WordLevel"));
  EXPECT_THAT(refusal(write("vocab.txt", "the\nmap\n")),
              has_all("vocab.txt: lacks \"[CLS]\"", "tokenizer_config.json"));
}

TEST_F(TokenizeProgram, MisuseIsReported) {
  const auto misuse = [&](const std::string& arguments) {
    const ShellResult result = tokenize(arguments, "the map\n");
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  const std::string tokenizer = "--tokenizer " + golden + "/added.json ";
  EXPECT_THAT(misuse(""), HasSubstr("--tokenizer is required"));
  EXPECT_THAT(misuse(tokenizer + "--ids --tokens"), HasSubstr("--ids"));
  EXPECT_THAT(misuse(tokenizer + "--lowercase --no-lowercase"), HasSubstr("--lowercase"));
  EXPECT_THAT(misuse(tokenizer + "--max-length -1"), HasSubstr("--max-length"));
  EXPECT_THAT(misuse(tokenizer + "--max-length 1"), has_all("length of 1 ", "2 special tokens", "2 or more"));
  EXPECT_THAT(misuse(tokenizer + "--stride 1"), HasSubstr("--stride requires --max-length"));
  EXPECT_THAT(misuse(tokenizer + "--truncation only_first"), HasSubstr("--truncation requires --max-length"));
  EXPECT_THAT(misuse(tokenizer + "--max-length 9 --truncation longest"), HasSubstr("longest not in"));
  EXPECT_THAT(misuse(tokenizer + "--max-length 9 --truncation only_second"),
              has_all("--truncation only_second", "--pair"));
  EXPECT_THAT(misuse(tokenizer + "--max-length 3 --stride 1"), has_all("stride of 1", "1 tokens"));
  EXPECT_THAT(misuse(tokenizer + "--pair"), has_all("standard input:1:", "one text", "expected two", "tab"));
  for (const auto& [option, value] :
       {std::pair("--pair", ""), {"--split-into-words", ""}, {"--max-length", " 9"}})
    EXPECT_THAT(misuse(tokenizer + "--decode " + option + value), has_all(option, "--decode"));
}

TEST_F(TokenizeProgram, PairsWordsAndWindows) {
  const std::string uncased = "--tokenizer " + golden + "/uncased.txt ";
  const std::string pair = "the film\tthe map the world\n";
  EXPECT_EQ(tokenize(uncased + "--pair --tokens", pair).out,
            "[CLS] the film [SEP] the map the world [SEP]\n");
  EXPECT_EQ(tokenize(uncased + "--pair --type-ids", pair).out, "0 0 0 0 1 1 1 1 1\n");
  EXPECT_EQ(tokenize(uncased + "--pair --sequence-ids", pair).out, "- 0 0 - 1 1 1 1 -\n");
  EXPECT_EQ(
      tokenize(uncased + "--pair --tokens --max-length 7 --stride 1 --truncation only_second",
               pair + "a\tb\n")
          .out,
      "[CLS] the film [SEP] the map [SEP]\t[CLS] the film [SEP] map the [SEP]\t[CLS] the film [SEP] the world "
      "[SEP]\n[CLS] a [SEP] b [SEP]\n");
  EXPECT_EQ(tokenize(uncased + "--pair --tokens --max-length 7 --truncation do_not_truncate", pair).out,
            tokenize(uncased + "--pair --tokens", pair).out);
  EXPECT_EQ(tokenize(uncased + "--tokens --max-length 4 --truncation-side left", "the map world\n").out,
            "[CLS] map world [SEP]\n");
  EXPECT_EQ(tokenize(uncased + "--word-ids --split-into-words", "films  naive \n").out, "- 0 0 1 -\n");
  EXPECT_EQ(tokenize(uncased + "--word-ids --pair --split-into-words", "a b\tc\n").out, "- 0 1 - 0 -\n");
}

TEST_F(TokenizeProgram, LinesBeforeABadOneAreWritten) {
  const std::string arguments =
      "--tokenizer " + golden + "/uncased.txt --tokens --pair --threads 2 --no-special ";
  std::string lines, wanted;
  for (int i = 0; i < 500; ++i) {
    lines += "the\tmap\n";
    wanted += "the map\n";
  }
  const ShellResult result = tokenize(arguments, lines + "the\n" + lines);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, wanted);
  EXPECT_THAT(result.err, has_all("standard input:501:", "one text"));
}

// As in transformers, the caller's arguments replace the lengths in the file.
TEST_F(TokenizeProgram, TheLengthsOfTheFileAreNamedButNotApplied) {
  nlohmann::json file = nlohmann::json::parse(read_file(golden + "/added.json"));
  file["truncation"] = {{"max_length", 4}, {"strategy", "OnlyFirst"}, {"stride", 0}};
  file["padding"] = {{"strategy", {{"Fixed", 20}}}, {"pad_id", 0}};
  const std::string arguments = "--tokenizer " + write("tokenizer.json", file.dump()) + " --tokens ";
  const ShellResult result = tokenize(arguments, "the map the map\n");
  EXPECT_EQ(result.out, "[CLS] the map the map [SEP]\n");
  EXPECT_THAT(result.err, has_all("truncation to 4 tokens is not", "--max-length 4 --truncation only_first",
                                  "padding to 20 tokens is not"));
  const ShellResult applied =
      tokenize(arguments + "--max-length 4 --truncation only_first", "the map the map\n");
  EXPECT_EQ(applied.out, "[CLS] the map [SEP]\n");
  EXPECT_EQ(applied.err, "");
}

TEST_F(TokenizeProgram, LinksNoTorch) {
  const ShellResult libraries = shell("ldd " STRETTO_PROGRAM);
  EXPECT_THAT(libraries.out, AllOf(HasSubstr("libc"), Not(HasSubstr("torch")), Not(HasSubstr("libc10"))));
}

}  // namespace
}  // namespace stretto
