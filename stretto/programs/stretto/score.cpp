#include <algorithm>
#include <iostream>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"
#include "stretto/corpus/conll.h"
#include "stretto/corpus/encoding.h"
#include "stretto/metrics/class_report.h"
#include "stretto/metrics/glue.h"
#include "stretto/metrics/spans.h"
#include "stretto/metrics/squad.h"
#include "stretto/programs/stretto/label_file.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

void print(const nlohmann::ordered_json& scores) { std::cout << scores.dump(2) << "\n"; }

struct SeqevalArguments {
  std::string file, mode = "default", scheme;
  bool table = false;
};

// Like the reference tool, warns of columns that do not look like gold and predicted tags, whose scores would
// be meaningless.
void warn_of_strange_tags(const std::string& file, metrics::TagSequences gold,
                          metrics::TagSequences predicted) {
  const auto is_tag = [](const std::string& tag) {
    constexpr std::string_view prefixes = "BIESLUM";
    return tag == "O" || tag == "_" ||
           (tag.size() > 2 && tag[1] == '-' && prefixes.find(tag[0]) != std::string_view::npos);
  };
  for (const auto& [side, sentences] : {std::pair("gold", gold), {"predicted", predicted}}) {
    for (const auto& tags : sentences) {
      const auto strange = std::ranges::find_if_not(tags, is_tag);
      if (strange == tags.end()) continue;
      log::warning(
          "{}: the {} tag \"{}\" is neither O nor a prefix and a type, such as B-PER; the last two columns are taken as gold and predicted tags",
          file, side, cut_utf8(*strange, 40));
      break;
    }
  }
}

// Prints the table of `stretto test` with the averages of seqeval's report.
void print_table(const metrics::SpanScores& scores) {
  std::vector<metrics::ClassScores> rows;
  const int64_t gold = scores.total().gold;
  for (const auto& [name, of] : {std::pair("micro avg", scores.micro()),
                                 {"macro avg", scores.macro()},
                                 {"weighted avg", scores.weighted()}})
    rows.push_back({name, of.precision, of.recall, of.f1, gold});
  const std::string averages = metrics::class_scores_table(rows);
  const std::string types = scores.table();
  // The averages share the header of the types, or have their own without types.
  std::cout << types << averages.substr(types.empty() ? 0 : averages.find('\n') + 1);
}

void score_seqeval(const SeqevalArguments& arguments) {
  if (!arguments.scheme.empty() && arguments.mode != "strict")
    throw ConfigError("--scheme {}: it applies to --mode strict; remove one", arguments.scheme);
  std::optional<corpus::TagScheme> scheme;
  if (!arguments.scheme.empty())
    scheme = corpus::parse_tag_scheme(arguments.scheme, {{"scheme", "--scheme"}});
  const bool conlleval = arguments.mode == "conlleval";
  if (arguments.table && conlleval)
    throw ConfigError("--table: it applies to --mode default and strict; remove one");
  const MappedFile file(arguments.file);
  const std::string_view content = corpus::utf8_text(file.text(), arguments.file);
  const corpus::ConllFile conll =
      corpus::parse_conll(content, arguments.file, /*document_markers=*/!conlleval);
  if (conll.columns < 2)
    throw DataError("{}: one column; expected the gold and the predicted tag in the last two columns",
                    arguments.file);
  std::vector<std::vector<std::string>> gold, predicted;
  for (const corpus::ConllSentence& sentence : conll.sentences) {
    if (conlleval && sentence.rows.size() == 1 && sentence.rows[0].front() == "-X-") continue;
    gold.emplace_back();
    predicted.emplace_back();
    for (const auto& row : sentence.rows) {
      gold.back().emplace_back(row[conll.columns - 2]);
      predicted.back().emplace_back(row[conll.columns - 1]);
    }
  }
  warn_of_strange_tags(arguments.file, gold, predicted);
  if (conlleval) return print(metrics::conlleval(gold, predicted));
  try {
    if (arguments.mode == "strict" && !scheme) scheme = corpus::detect_tag_scheme(gold);
    const metrics::SpanScores scores(gold, predicted, scheme);
    arguments.table ? print_table(scores) : print(scores.to_json());
  } catch (const DataError& error) {
    throw DataError("{}: {}", arguments.file, error.what());
  }
}

struct SquadArguments {
  std::string data, predictions, na_prob, version = "auto";
  std::optional<double> threshold;
};

// Warns of questions without a prediction, like evaluate-v1.1.py, which names each of them.
void warn_of_unanswered(const SquadArguments& arguments, const corpus::QuestionSet& questions,
                        const metrics::Predictions& predictions) {
  int64_t unanswered = 0;
  std::string first;
  for (const auto& question : questions.questions) {
    if (predictions.contains(question.id)) continue;
    if (unanswered++ == 0) first = question.id;
  }
  if (unanswered == 0) return;
  log::warning("{}: {} of {} questions have no prediction and count as wrong; the first is {}",
               arguments.predictions, unanswered, questions.questions.size(), cut_utf8(first, 40));
}

metrics::Predictions read_predictions(const std::string& path) {
  const nlohmann::json json = read_json(path);
  if (!json.is_object())
    throw DataError("{}: a JSON {}; expected an object of question ids and answers, such as predictions.json",
                    path, json.type_name());
  metrics::Predictions predictions;
  for (const auto& [id, answer] : json.items()) {
    if (!answer.is_string())
      throw DataError("{}: the answer to question {} is a JSON {}; expected a string, \"\" for no answer",
                      path, id, answer.type_name());
    predictions[id] = answer.get<std::string>();
  }
  return predictions;
}

// Reads probabilities in file order, which breaks ties.
metrics::NullOdds read_null_odds(const std::string& path) {
  read_json(path);  // limits its size and depth, and names the position of a mistake
  const auto json = nlohmann::ordered_json::parse(read_file(path));
  metrics::NullOdds odds;
  if (json.is_object()) {
    for (const auto& [id, odd] : json.items()) {
      if (!odd.is_number()) break;
      odds.emplace_back(id, odd.get<double>());
    }
  }
  if (!json.is_object() || odds.size() != json.size())
    throw DataError("{}: expected an object of question ids and numbers, such as null_odds.json", path);
  return odds;
}

void score_squad(const SquadArguments& arguments) {
  if (arguments.threshold && arguments.na_prob.empty())
    throw ConfigError("--na-prob-thresh: it applies to the values of --na-prob, which is not given");
  const corpus::QuestionSet questions = corpus::read_questions(arguments.data);
  const metrics::Predictions predictions = read_predictions(arguments.predictions);
  const bool v1 =
      arguments.version == "auto" ? questions.count_unanswerable() == 0 : arguments.version == "1.1";
  if (v1 && !arguments.na_prob.empty())
    throw ConfigError(
        "--na-prob: {} is scored as SQuAD 1.1, whose questions all have answers; remove it, or add --version 2.0",
        arguments.data);
  if (v1) {
    warn_of_unanswered(arguments, questions, predictions);
    return print(metrics::squad_v1(questions, predictions));
  }
  metrics::NullOdds odds;
  if (!arguments.na_prob.empty()) odds = read_null_odds(arguments.na_prob);
  print(metrics::squad_v2(questions, predictions, arguments.na_prob.empty() ? nullptr : &odds,
                          arguments.threshold.value_or(1.0)));
}

struct GlueArguments {
  std::string task, gold, predictions, gold_column, prediction_column;
};

void score_glue(const GlueArguments& arguments) {
  const metrics::GlueTask& task = metrics::glue_task(arguments.task);
  const auto gold = read_label_file(arguments.gold, LabelSide::gold, arguments.gold_column);
  const auto predicted =
      read_label_file(arguments.predictions, LabelSide::predicted, arguments.prediction_column);
  try {
    print(metrics::glue_scores(task, gold, predicted));
  } catch (const DataError& error) {
    throw DataError("{} and {}: {}", arguments.gold, arguments.predictions, error.what());
  }
}

void add_seqeval(CLI::App& score) {
  auto arguments = std::make_shared<SeqevalArguments>();
  CLI::App* verb =
      score.add_subcommand("seqeval", "Spans of tagged words: precision, recall and F1 like seqeval");
  verb->add_option("file", arguments->file,
                   "A CoNLL file with the gold and the predicted tag in the last two columns")
      ->required()
      ->type_name("FILE");
  verb->add_option(
          "--mode", arguments->mode,
          "default: like seqeval without a mode; strict: only well-formed spans count; conlleval: what that script prints, in percent")
      ->check(CLI::IsMember({"default", "strict", "conlleval"}))
      ->capture_default_str();
  verb->add_option(
          "--scheme", arguments->scheme,
          "With --mode strict: IOB1, IOB2, IOE1, IOE2, IOBES or BILOU (default: detected from the gold tags)")
      ->type_name("SCHEME");
  verb->add_flag("--table", arguments->table, "Print a table of the types of spans instead of JSON");
  verb->callback([arguments] { score_seqeval(*arguments); });
}

void add_squad(CLI::App& score) {
  auto arguments = std::make_shared<SquadArguments>();
  CLI::App* verb =
      score.add_subcommand("squad", "Answers to questions: exact match and F1 like SQuAD's scripts");
  verb->add_option("data", arguments->data, "The questions: SQuAD's JSON, or JSON Lines")
      ->required()
      ->type_name("DATA");
  verb->add_option("predictions", arguments->predictions, "A JSON object of question ids and answers")
      ->required()
      ->type_name("PREDICTIONS");
  verb->add_option(
          "--na-prob", arguments->na_prob,
          "A JSON object of question ids and the odds that they have no answer: adds the best thresholds")
      ->type_name("FILE");
  verb->add_option("--na-prob-thresh", arguments->threshold,
                   "Answers with a higher na-prob count as none (default: 1)")
      ->type_name("NUMBER");
  verb->add_option("--version", arguments->version,
                   "Version of the metrics; auto: 2.0 if there are questions without an answer")
      ->check(CLI::IsMember({"auto", "1.1", "2.0"}))
      ->capture_default_str();
  verb->callback([arguments] { score_squad(*arguments); });
}

void add_glue(CLI::App& score) {
  auto arguments = std::make_shared<GlueArguments>();
  CLI::App* verb = score.add_subcommand("glue", "Labels of a task of GLUE: its metrics");
  verb->add_option("task", arguments->task,
                   "cola, sst2, mrpc, qqp, stsb, mnli, mnli-mm, qnli, rte, wnli or ax")
      ->required()
      ->type_name("TASK");
  verb->add_option("gold", arguments->gold,
                   "The gold labels: a file of the task (.tsv, .csv, .jsonl), or a label per line")
      ->required()
      ->type_name("GOLD");
  verb->add_option(
          "predictions", arguments->predictions,
          "The predicted labels in the same order: predict_results_TASK.txt, predictions.jsonl, or a label per line")
      ->required()
      ->type_name("PREDICTIONS");
  verb->add_option("--gold-column", arguments->gold_column, "Name or number of the column of gold labels")
      ->type_name("NAME");
  verb->add_option("--prediction-column", arguments->prediction_column,
                   "Name or number of the column of predictions")
      ->type_name("NAME");
  verb->callback([arguments] { score_glue(*arguments); });
}

}  // namespace

void add_score(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand("score", "Score files of predictions; prints a JSON object");
  verb->require_subcommand(1);
  add_seqeval(*verb);
  add_squad(*verb);
  add_glue(*verb);
}

}  // namespace stretto::cli
