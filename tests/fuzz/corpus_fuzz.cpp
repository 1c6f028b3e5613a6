#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate_json.h"

#include "stretto/corpus/squad.h"
#include "stretto/corpus/tagged.h"

// Input: a file of tagged sentences (CoNLL, JSON Lines) or of questions (SQuAD's JSON, rows), which the first
// byte selects.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  const std::string conll(1, '\0'), lists(1, '\x01'), questions(1, '\x02');
  return {
      conll + "-DOCSTART- O\n\nEU B-ORG\nwas O\n\nPeter U-PER\n",
      conll + "# c\nNew York\tB-LOC\n\n#\tO\n",
      lists + "{\"tokens\": [\"EU\", \"was\"], \"ner_tags\": [\"B-ORG\", \"O\"]}\n",
      lists + "{\"tokens\": [\"a\"], \"ner_tags\": [1]}\n",
      questions +
          R"({"version": "v2.0", "data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": [{"id": "1",
"question": "w", "answers": [{"text": "b", "answer_start": 2}], "is_impossible": false}]}]}]})",
      questions +
          R"({"id": 1, "context": "a", "question": "q", "answers": {"text": ["a"], "answer_start": [0]}}
{"id": 2, "context": "a", "question": "q"}
)"};
}

// Changes values in JSON.
std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  const std::string content = input.empty() ? "" : input.substr(1);
  return input.substr(0, 1) + mutate_json(content, random);
}

void run(const std::string& input) {
  if (input.empty()) return;
  const std::string_view content = std::string_view(input).substr(1);
  const auto choice = static_cast<unsigned char>(input[0]) % 3;
  if (choice == 2) {
    const corpus::QuestionSet set = corpus::parse_questions(content, "a.json");
    for (const corpus::Question& question : set.questions)
      require(question.context < set.contexts.size(), "a question has a context");
    return;
  }
  const corpus::TaggedCorpus tagged =
      corpus::parse_tagged(content, choice == 0 ? "a.conll" : "a.jsonl",
                           {.tag_names = {"O", "B-X"}, .scheme = corpus::TagScheme::iobes});
  for (const corpus::TaggedSentence& sentence : tagged.sentences)
    require(sentence.tags.size() == (tagged.has_tags ? sentence.tokens.size() : 0),
            "each token has a tag, or none has");
}

}  // namespace stretto::fuzz
