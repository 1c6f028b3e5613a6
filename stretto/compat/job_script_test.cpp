#include "stretto/compat/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::compat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class JobScript : public ::testing::Test {
 protected:
  JobCommand read(const std::string& script, const std::map<std::string, std::string>& given = {}) const {
    write_file_atomic(folder_.path() / "job.sh", script);
    return read_job_script(folder_.path() / "job.sh", given);
  }
  // The words of "torchrun WORDS" after some lines.
  std::vector<std::string> words(const std::string& lines, const std::string& arguments,
                                 const std::map<std::string, std::string>& given = {}) const {
    std::vector<std::string> texts;
    for (const ShellWord& word : read(lines + "\ntorchrun " + arguments + "\n", given).words) {
      EXPECT_EQ(word.unknown, "") << word.text;
      texts.push_back(word.text);
    }
    texts.erase(texts.begin());
    return texts;
  }
  std::string error(const std::string& script) const {
    return message_of<ConfigError>([&] { read(script); });
  }

  TempFolder folder_;
};

TEST_F(JobScript, WordsAreThoseOfBash) {
  EXPECT_THAT(words("A=1; B='x  y'", "$A \"$B\" $B ${A}b \\$A 'it'\\''s' \"\" a\\ b"),
              ElementsAre("1", "x  y", "x", "y", "1b", "$A", "it's", "", "a b"));
  EXPECT_THAT(words("ARGS=' --a  1 '", "x$ARGS --b \\\n  --c # a comment\n"),
              ElementsAre("x", "--a", "1", "--b", "--c"));
  EXPECT_THAT(words("A=(1 'two words' 3)", "${A[1]} $A \"${A[@]}\""),
              ElementsAre("two", "words", "1", "1", "two words", "3"));
  EXPECT_THAT(words("A=1\nA+=2", "$A ${B:-no} ${B-no} ${A:+has} ${B:+has} ${C:=3} $C"),
              ElementsAre("12", "no", "no", "has", "3", "3"));
  EXPECT_THAT(words("export A=1 B=2; unset B", "$A$B 2>&1 >log <in |& tee log"), ElementsAre("1"));
  EXPECT_THAT(words("cat <<END > file\nA=3\ntorchrun no\nEND\nA=2", "$A"), ElementsAre("2"));
  EXPECT_THAT(words("HERE=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" &> /dev/null && pwd)", "$HERE/x"),
              ElementsAre((folder_.path() / "x").string()));
}

TEST_F(JobScript, NumbersAreComputed) {
  EXPECT_THAT(words("A=32; B=3", "$(($A * $B / 8)) $((A-B*2)) $(( (A + B) % 4 )) $((A > B && !0)) $((NONE))"),
              ElementsAre("12", "26", "3", "1", "0"));
  EXPECT_THAT(error("DP=0\nB=$((1024 / $DP))"),
              has_all("job.sh:2: $((1024 / $DP)) divides by 0; DP is 0", "NAME=VALUE"));
  EXPECT_THAT(error("A=9; B=$((A - 9))\nC=$((A % B))"),
              has_all("job.sh:2: $((A % B)) divides by 0; A is 9, B is 0 (line 1: A is 9)"));
  EXPECT_THAT(error("A=eight\nB=$(($A * 2))"),
              has_all("job.sh:2:", "A is \"eight\"; expected a whole number"));
  EXPECT_THAT(error("B=$((1 +))"), has_all("job.sh:1:", "cannot be read to its end"));
  EXPECT_THAT(error("A=x\nB=$((A + 1))"), has_all("job.sh:2:", "A is \"x\"; expected a whole number"));
  EXPECT_THAT(error("B=$((9223372036854775807 + 1))"), HasSubstr("is too large"));
  EXPECT_THAT(error("B=$((" + std::string(200, '(') + "))"), HasSubstr("cannot be read"));
  EXPECT_THAT(error("B=$((" + std::string(2000, '-') + "1))"), HasSubstr("cannot be read"));
}

TEST_F(JobScript, ConditionsSelectLines) {
  const std::string branches =
      "if [ $A -gt 1 ]; then X=many\nelif [[ $A == 1 && -n \"$B\" ]]; then\n  X=one\nelse X=none; fi";
  EXPECT_THAT(words("A=2\n" + branches, "$X"), ElementsAre("many"));
  EXPECT_THAT(words("A=1; B=b\n" + branches, "$X"), ElementsAre("one"));
  EXPECT_THAT(words("A=1\n" + branches, "$X"), ElementsAre("none"));
  EXPECT_THAT(words(branches, "$X"), ElementsAre("none")) << "bash ends such a condition with an error";
  EXPECT_THAT(words("if [ -v A ] || [ ! -z '' ]; then X=1; else X=2; fi", "$X"), ElementsAre("2"));
  EXPECT_THAT(words("if [ -v A ]; then X=1; fi", "$X y", {{"A", ""}}), ElementsAre("1", "y"));
  EXPECT_THAT(words("X=1; [ $X = 1 ] && X=2; [ $X = 1 ] && X=3 || X=4", "$X"), ElementsAre("4"));
  EXPECT_THAT(words("if (( 3 > 2 )); then X=1; if false; then X=2; fi; fi", "$X"), ElementsAre("1"));
  EXPECT_THAT(read("if [ 1 -eq 1 ]; then\ntorchrun x\n").notes, ElementsAre(HasSubstr("1 if without fi")));
  EXPECT_THAT(read("if [ 1 -eq 2 ]; then\ntorchrun x\nfi\ntorchrun y z").words, SizeIs(3));
}

// A given value replaces what the script assigns.
TEST_F(JobScript, VariablesAreGiven) {
  EXPECT_THAT(words("A=1; : ${B:=2}", "$A $B", {{"A", "5"}, {"B", "6"}}), ElementsAre("5", "6"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                read("LENGTH=1; torchrun $LENGTH", {{"LENGHT", "2"}});
              }),
              has_all("job.sh: ", "no variable LENGHT", "did you mean \"LENGTH\"?"));
}

TEST_F(JobScript, WhatWouldHaveToRunIsNotKnown) {
  const auto unknown = [&](const std::string& lines) {
    return read(lines + "\ntorchrun $A b$B").words.at(1).unknown;
  };
  EXPECT_EQ(unknown("A=`hostname`"), "line 1: hostname is not run");
  EXPECT_EQ(unknown("\nA=1$(ls | wc -l)"), "line 2: ls | wc -l is not run");
  EXPECT_EQ(unknown("X=$(nproc); A=$((X * 2))"), "line 1: nproc is not run");
  EXPECT_EQ(unknown("A=0\nfor i in 1 2; do A=$i; done"), "line 2: it is assigned in a for");
  EXPECT_EQ(unknown("A=0\nif grep -q x y; then A=1; else A=2; fi"), "line 2: grep is not run");
  EXPECT_EQ(unknown("A=${X%.*}"), "line 1: ${X%.*} is not read");
  EXPECT_EQ(unknown("A=$1"), "line 1: $1 is known when the script runs");
  // Parts that are known stay.
  const JobCommand command = read("H=(`hosts`)\nARGS=\"--n 2 --addr ${H[0]} --port 1\"\ntorchrun $ARGS x");
  ASSERT_THAT(command.words, SizeIs(8));
  EXPECT_EQ(command.words[2].text, "2");
  EXPECT_EQ(command.words[4].unknown, "line 1: hosts is not run");
  EXPECT_EQ(command.words[6].unknown, "");
  EXPECT_THAT(error("if grep -q x y; then torchrun a; fi"),
              has_all("job.sh:1:", "whether this torchrun is run (line 1: grep is not run)"));
  EXPECT_THAT(read("source env.sh\ntorchrun x").notes,
              ElementsAre(HasSubstr("job.sh:1: source env.sh is not read")));
}

TEST_F(JobScript, OtherFilesAreRefused) {
  EXPECT_THAT(error("echo torchrun x"), has_all("job.sh: it starts nothing by torchrun"));
  EXPECT_THAT(error(""), HasSubstr("it starts nothing by torchrun"));
  EXPECT_THAT(error("if [ 1 = 2 ]; then\ntorchrun x"), has_all("1 if without fi, and no torchrun before it"));
  EXPECT_THAT(error("A='x\ntorchrun y"), has_all("job.sh:1: ' is not closed"));
  EXPECT_THAT(error("A=$(x\ntorchrun y"), has_all("job.sh:1: $( is not closed"));
  EXPECT_THAT(error(": ${DATA:?the folder}\ntorchrun x"),
              has_all("job.sh:1: DATA is not set: the folder", "DATA=VALUE"));
  EXPECT_THAT(error("[ 1 = 1 ] && { A=1; }"), has_all("job.sh:1: a group in { } is not read", "if ... fi"));
  EXPECT_THAT(error("(cd x; torchrun y)"), has_all("job.sh:1: a group in ( ) is not read"));
  EXPECT_THAT(error("A=3\nif [ $A -eq 3 ]; then\n  exit 1\nfi\ntorchrun x"),
              has_all("job.sh:3: the script ends here (exit 1), before torchrun", "NAME=VALUE"));
  EXPECT_THAT(read("cd x || exit 1\nif grep -q x y; then exit 1; fi\ntorchrun x").words, SizeIs(2));
  EXPECT_THAT(read("{ A=1; torchrun $A; }").words, SizeIs(2));
  EXPECT_THAT(read("srun --ntasks 2 python3 -m torch.distributed.run --nnodes 2 x.py").words, SizeIs(4));
}

}  // namespace
}  // namespace stretto::compat
