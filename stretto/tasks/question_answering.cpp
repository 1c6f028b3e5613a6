#include "stretto/tasks/question_answering.h"

#include <algorithm>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/config/data_names.h"
#include "stretto/config/tasks/question_answering.h"
#include "stretto/data/summary.h"
#include "stretto/tasks/extractive_qa.h"
#include "stretto/tasks/fine_tuning.h"
#include "stretto/tasks/preparation.h"
#include "stretto/trainer/folder/run_folder.h"

namespace stretto::tasks {
namespace {

using corpus::QuestionSet;

class QuestionAnswering : public FineTuning<QuestionSet, data::QuestionDataset, ExtractiveQa> {
 public:
  explicit QuestionAnswering(const TaskContext& context)
      : FineTuning(context, {.head = "question answering",
                             .unlabelled = "does not say which answers are right",
                             .predictions = "predictions.json",
                             .metrics = {"loss", "f1", "exact_match", "exact", "HasAns_exact", "HasAns_f1",
                                         "NoAns_exact", "NoAns_f1", "best_exact", "best_f1"}}),
        settings_(recipe_.task_settings.as<QuestionAnsweringConfig>()) {}

 private:
  TrainingFiles read_for_training() override;
  QuestionSet read_for_test(const std::vector<std::string>&) override {
    return read_scored("data.test", *recipe_.data.test, recipe_.data.max_test_samples);
  }
  bool has_labels(const QuestionSet& set) const override { return set.has_gold; }
  std::string content_hash(const QuestionSet& set) const override;
  std::unique_ptr<ExtractiveQa> make_module(const ModuleArguments& arguments) override {
    return std::make_unique<ExtractiveQa>(arguments.model, answer_options(arguments.scored), arguments.seed,
                                          models_, arguments.ranks);
  }
  std::unique_ptr<data::QuestionDataset> tokenize(const QuestionSet& set, const TextModel& model,
                                                  const text::Tokenizer& tokenizer,
                                                  bool is_scored) const override;
  void describe(const QuestionSet& set, const data::QuestionDataset& dataset) const override;
  void evaluate_on(ExtractiveQa& module, const QuestionSet& set,
                   const data::QuestionDataset& dataset) const override {
    module.evaluate_on(set, dataset);
  }
  bool evaluations_read_corpus() const override { return true; }
  TestResults write_results(const QuestionSet& set, const ExtractiveQa& module,
                            const Predictions& predictions, const Metrics& metrics) const override;

  // The first `most` questions of the file of a setting, with their contexts.
  QuestionSet read(const char* setting, const std::filesystem::path& file,
                   const std::optional<int64_t>& most) const;
  // Likewise, of a file that predictions are compared with.
  QuestionSet read_scored(const char* setting, const std::filesystem::path& file,
                          const std::optional<int64_t>& most) const;
  void handle_misplaced(QuestionSet& set) const;
  void refuse_unanswerable(const QuestionSet& set) const;
  bool may_have_no_answer(const QuestionSet& scored) const;
  std::string describe_scoring(const QuestionSet& scored) const;
  AnswerOptions answer_options(const QuestionSet* scored) const;
  void write_predictions(const QuestionSet& set, std::span<const QuestionAnswers> answers,
                         bool null_answers) const;

  const QuestionAnsweringConfig& settings_;
};

QuestionSet QuestionAnswering::read(const char* setting, const std::filesystem::path& file,
                                    const std::optional<int64_t>& most) const {
  QuestionSet set = with_label(recipe_.origins.label(setting), [&] { return corpus::read_questions(file); });
  keep_first(set.questions, most);
  if (most) set.contexts.resize(set.questions.back().context + 1);
  return set;
}

std::string QuestionAnswering::content_hash(const QuestionSet& set) const {
  std::vector<uint64_t> parts;
  for (const std::string& context : set.contexts) parts.push_back(hash64(context));
  for (const corpus::Question& question : set.questions) {
    parts.push_back(hash64(question.id));
    parts.push_back(hash64(question.text));
    parts.push_back(question.context);
    for (const corpus::Answer& answer : question.answers) {
      parts.push_back(hash64(answer.text));
      parts.push_back(static_cast<uint64_t>(answer.start));
    }
  }
  return hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

// A file without gold answers does not state which of its questions are unanswerable.
void QuestionAnswering::refuse_unanswerable(const QuestionSet& set) const {
  if (settings_.version_2_with_negative.value_or(true) || !set.has_gold) return;
  const auto without =
      std::ranges::find_if(set.questions, [](const auto& question) { return question.answers.empty(); });
  if (without == set.questions.end()) return;
  throw ConfigError("{}: it is false, but {} has no answer; set it to true, or remove such questions",
                    recipe_.origins.label("question_answering.version_2_with_negative"), set.where(*without));
}

// Whether "" may be predicted, and so whether the metrics are SQuAD 2.0's or 1.1's. The questions that are
// scored decide: evaluations in training and `stretto test` of a file agree, regardless of the file on which
// the model was trained.
bool QuestionAnswering::may_have_no_answer(const QuestionSet& scored) const {
  return settings_.version_2_with_negative.value_or(scored.count_unanswerable() > 0);
}

std::string QuestionAnswering::describe_scoring(const QuestionSet& scored) const {
  const bool no_answers = may_have_no_answer(scored);
  const std::string version = no_answers ? "as SQuAD 2.0" : "as SQuAD 1.1";
  if (settings_.version_2_with_negative)
    return fmt::format("{}: {} is {}", version,
                       recipe_.origins.mention("question_answering.version_2_with_negative"), no_answers);
  if (!scored.has_gold)
    return fmt::format("{}: {} does not say which questions have no answer", version, scored.name);
  if (!no_answers) return fmt::format("{}: every question of {} has an answer", version, scored.name);
  return fmt::format("{}: {} of {} of {} have no answer", version, scored.count_unanswerable(),
                     counted(std::ssize(scored.questions), "question"), scored.name);
}

AnswerOptions QuestionAnswering::answer_options(const QuestionSet* scored) const {
  if (scored != nullptr && is_first()) log::info("scoring    {}", describe_scoring(*scored));
  return {.null_answers = scored != nullptr && may_have_no_answer(*scored),
          .n_best_size = settings_.n_best_size,
          .max_answer_length = settings_.max_answer_length,
          .null_score_diff_threshold = settings_.null_score_diff_threshold};
}

QuestionSet QuestionAnswering::read_scored(const char* setting, const std::filesystem::path& file,
                                           const std::optional<int64_t>& most) const {
  QuestionSet set = read(setting, file, most);
  set.require_distinct_ids();
  refuse_unanswerable(set);
  return set;
}

std::unique_ptr<data::QuestionDataset> QuestionAnswering::tokenize(const QuestionSet& set, const TextModel&,
                                                                   const text::Tokenizer& tokenizer,
                                                                   bool is_scored) const {
  return std::make_unique<data::QuestionDataset>(
      set, tokenizer,
      data::QuestionDatasetOptions{.max_length = recipe_.data.max_length,
                                   .doc_stride = settings_.doc_stride,
                                   .cache = recipe_.data.cache.value_or(recipe_.output / "cache"),
                                   .pad_to_multiple_of = recipe_.data.pad_to_multiple_of,
                                   .is_scored = is_scored,
                                   .names = data_names});
}

void QuestionAnswering::describe(const QuestionSet& set, const data::QuestionDataset& dataset) const {
  log::info("data       {}: {} on {}, {} without an answer; {} of up to {} tokens", set.name,
            counted(std::ssize(set.questions), "question"), counted(std::ssize(set.contexts), "context"),
            set.count_unanswerable(), counted(dataset.size(), "window"), recipe_.data.max_length);
}

// Refuses or drops questions whose answer is not at the position that the file gives.
void QuestionAnswering::handle_misplaced(QuestionSet& set) const {
  const auto misplaced = data::find_misplaced_answers(set);
  if (misplaced.empty()) return;
  const corpus::Question& first = set.questions[misplaced.front().question];
  const std::string& found = misplaced.front().found;
  const std::string what = fmt::format(
      "{}: the answer \"{}\" is not at answer_start {} of the context ({})", set.where(first),
      first.answers.front().text.substr(0, 60), first.answers.front().start,
      found.empty() ? "the context ends before it" : fmt::format("there: \"{}\"", found.substr(0, 60)));
  if (settings_.misplaced_answers == MisplacedAnswers::refuse) {
    throw DataError("{}{}; correct the file, or set question_answering.misplaced_answers: skip", what,
                    misplaced.size() > 1 ? fmt::format(", and {} more", misplaced.size() - 1) : "");
  }
  for (const auto& one : misplaced)
    log::warning("skipping {}: its answer is not at its answer_start",
                 set.where(set.questions[one.question]));
  size_t next = 0, index = 0;
  std::erase_if(set.questions, [&](const corpus::Question&) {
    const bool skipped = next < misplaced.size() && misplaced[next].question == index++;
    next += skipped;
    return skipped;
  });
  if (set.questions.empty()) throw DataError("{}: no question has its answer at its answer_start", set.name);
}

QuestionAnswering::TrainingFiles QuestionAnswering::read_for_training() {
  TrainingFiles files{.train = read("data.train", *recipe_.data.train, recipe_.data.max_train_samples)};
  if (files.train.count_unanswerable() == std::ssize(files.train.questions))
    throw DataError("{}: no question has an answer, from which nothing can be learned", files.train.name);
  handle_misplaced(files.train);
  refuse_unanswerable(files.train);
  if (recipe_.data.validation)
    files.validation =
        read_scored("data.validation", *recipe_.data.validation, recipe_.data.max_validation_samples);
  return files;
}

TestResults QuestionAnswering::write_results(const QuestionSet& set, const ExtractiveQa& module,
                                             const Predictions& predictions, const Metrics& metrics) const {
  const auto answers = module.answers(predictions);
  const bool null_answers = may_have_no_answer(set);
  write_predictions(set, answers, null_answers);
  if (metrics.empty()) return {};
  TestResults results{squad_scores(set, answers, null_answers)};
  results.record["loss"] = metrics.at("loss");
  return results;
}

void QuestionAnswering::write_predictions(const QuestionSet& set, std::span<const QuestionAnswers> answers,
                                          bool null_answers) const {
  nlohmann::ordered_json best = nlohmann::ordered_json::object(), all = best, odds = best;
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& id = set.questions[i].id;
    best[id] = answers[i].answer;
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const CandidateAnswer& candidate : answers[i].n_best) {
      list.push_back({{"text", candidate.text},
                      {"probability", candidate.probability},
                      {"start_logit", candidate.start_score},
                      {"end_logit", candidate.end_score}});
    }
    all[id] = std::move(list);
    if (answers[i].null_odds) odds[id] = *answers[i].null_odds;
  }
  const trainer::RunFolder folder(recipe_.output);
  folder.write_json("predictions.json", best);
  folder.write_json("nbest_predictions.json", all);
  if (null_answers) {
    folder.write_json("null_odds.json", odds);
  } else {
    std::filesystem::remove(folder.path() / "null_odds.json");  // from other data
  }
}

}  // namespace

std::unique_ptr<Task> make_question_answering(const TaskContext& context) {
  return std::make_unique<QuestionAnswering>(context);
}

}  // namespace stretto::tasks
