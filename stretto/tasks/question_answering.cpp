#include "stretto/tasks/question_answering.h"

#include <algorithm>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/config/data_names.h"
#include "stretto/data/summary.h"
#include "stretto/model_config/heads.h"
#include "stretto/tasks/extractive_qa.h"
#include "stretto/tasks/preparation.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/summary.h"

namespace stretto {
namespace {

using corpus::QuestionSet;

std::string content_hash(const QuestionSet& set) {
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

class QuestionAnswering : public Task {
 public:
  explicit QuestionAnswering(const TaskContext& context)
      : recipe_(context.recipe), mesh_(context.mesh), device_(context.device), models_(context.models) {}

  FitResult train(const std::vector<std::shared_ptr<Callback>>& callbacks) override;
  void test() override;

 private:
  static QuestionSet read(const std::filesystem::path& file, const std::optional<int64_t>& most);
  QuestionSet read_scored(const std::filesystem::path& file, const std::optional<int64_t>& most) const;
  std::unique_ptr<data::QuestionDataset> tokenize(const QuestionSet& set, const text::Tokenizer& tokenizer,
                                                  bool is_scored) const;
  void handle_misplaced(QuestionSet& set) const;
  void refuse_unanswerable(const QuestionSet& set) const;
  bool may_have_no_answer(const QuestionSet& scored) const;
  std::string describe_scoring(const QuestionSet& scored) const;
  AnswerOptions answer_options(const QuestionSet* scored) const;
  void compare_inputs(const text::Tokenizer& tokenizer, const TextModel& model,
                      std::initializer_list<std::pair<const char*, const QuestionSet*>> sets) const;
  void write_predictions(const QuestionSet& set, std::span<const QuestionAnswers> answers,
                         bool null_answers) const;

  const Recipe& recipe_;
  const Mesh& mesh_;
  at::Device device_;
  const ModelRegistry& models_;
};

// A file without right answers does not say which of its questions have none.
void QuestionAnswering::refuse_unanswerable(const QuestionSet& set) const {
  if (recipe_.question_answering.version_2_with_negative.value_or(true) || !set.has_gold) return;
  const auto without =
      std::ranges::find_if(set.questions, [](const auto& question) { return question.answers.empty(); });
  if (without == set.questions.end()) return;
  throw ConfigError("{}: it is false, but {} has no answer; set it to true, or remove such questions",
                    recipe_.origins.label("question_answering.version_2_with_negative"), set.where(*without));
}

// Whether "" may be predicted, and so whether the metrics are SQuAD 2.0's or 1.1's. The questions that are scored
// decide: evaluations in training and `stretto test` of a file agree, whatever file the model was trained on.
bool QuestionAnswering::may_have_no_answer(const QuestionSet& scored) const {
  return recipe_.question_answering.version_2_with_negative.value_or(scored.count_unanswerable() > 0);
}

std::string QuestionAnswering::describe_scoring(const QuestionSet& scored) const {
  const bool no_answers = may_have_no_answer(scored);
  const std::string version = no_answers ? "as SQuAD 2.0" : "as SQuAD 1.1";
  if (recipe_.question_answering.version_2_with_negative)
    return fmt::format("{}: {} is {}", version,
                       recipe_.origins.mention("question_answering.version_2_with_negative"), no_answers);
  if (!scored.has_gold)
    return fmt::format("{}: {} does not say which questions have no answer", version, scored.name);
  if (!no_answers) return fmt::format("{}: every question of {} has an answer", version, scored.name);
  return fmt::format("{}: {} of {} of {} have no answer", version, scored.count_unanswerable(),
                     counted(std::ssize(scored.questions), "question"), scored.name);
}

AnswerOptions QuestionAnswering::answer_options(const QuestionSet* scored) const {
  const QuestionAnsweringConfig& settings = recipe_.question_answering;
  if (scored != nullptr && mesh_.world().rank() == 0) log::info("scoring    {}", describe_scoring(*scored));
  return {.null_answers = scored != nullptr && may_have_no_answer(*scored),
          .n_best_size = settings.n_best_size,
          .max_answer_length = settings.max_answer_length,
          .null_score_diff_threshold = settings.null_score_diff_threshold};
}

// The first `most` questions of a file, with their contexts.
QuestionSet QuestionAnswering::read(const std::filesystem::path& file, const std::optional<int64_t>& most) {
  QuestionSet set = corpus::read_questions(file);
  keep_first(set.questions, most);
  if (most) set.contexts.resize(set.questions.back().context + 1);
  return set;
}

// Reads a file that predictions are compared with.
QuestionSet QuestionAnswering::read_scored(const std::filesystem::path& file,
                                           const std::optional<int64_t>& most) const {
  QuestionSet set = read(file, most);
  set.require_distinct_ids();
  refuse_unanswerable(set);
  return set;
}

std::unique_ptr<data::QuestionDataset> QuestionAnswering::tokenize(const QuestionSet& set,
                                                                   const text::Tokenizer& tokenizer,
                                                                   bool is_scored) const {
  const data::QuestionDatasetOptions options = {
      .max_length = recipe_.data.max_length,
      .doc_stride = recipe_.question_answering.doc_stride,
      .cache = recipe_.data.cache.value_or(recipe_.output / "cache"),
      .pad_to_multiple_of = recipe_.data.pad_to_multiple_of,
      .is_scored = is_scored,
      .names = data_names};
  auto dataset = on_rank_0_first(
      mesh_, [&] { return std::make_unique<data::QuestionDataset>(set, tokenizer, options); });
  if (mesh_.world().rank() != 0) return dataset;
  log::info("data       {}: {} on {}, {} without an answer; {} of up to {} tokens", set.name,
            counted(std::ssize(set.questions), "question"), counted(std::ssize(set.contexts), "context"),
            set.count_unanswerable(), counted(dataset->size(), "window"), recipe_.data.max_length);
  return dataset;
}

// Refuses or leaves out questions whose answer is not where it is said to be.
void QuestionAnswering::handle_misplaced(QuestionSet& set) const {
  const auto misplaced = data::find_misplaced_answers(set);
  if (misplaced.empty()) return;
  const corpus::Question& first = set.questions[misplaced.front().question];
  const std::string& found = misplaced.front().found;
  const std::string what = fmt::format(
      "{}: the answer \"{}\" is not at answer_start {} of the context ({})", set.where(first),
      first.answers.front().text.substr(0, 60), first.answers.front().start,
      found.empty() ? "the context ends before it" : fmt::format("there: \"{}\"", found.substr(0, 60)));
  if (recipe_.question_answering.misplaced_answers == MisplacedAnswers::refuse) {
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

void QuestionAnswering::compare_inputs(
    const text::Tokenizer& tokenizer, const TextModel& model,
    std::initializer_list<std::pair<const char*, const QuestionSet*>> sets) const {
  std::vector<Input> inputs = inputs_of(tokenizer, model);
  for (const auto& [name, set] : sets)
    if (set != nullptr) inputs.push_back({name, "contents " + content_hash(*set), set->name});
  require_same_inputs(mesh_.world(), inputs);
}

FitResult QuestionAnswering::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, *recipe_.tokenizer.path);
  QuestionSet train_questions = read(*recipe_.data.train, recipe_.data.max_train_samples);
  if (train_questions.count_unanswerable() == std::ssize(train_questions.questions))
    throw DataError("{}: no question has an answer, from which nothing can be learned", train_questions.name);
  handle_misplaced(train_questions);
  std::optional<QuestionSet> validation;
  refuse_unanswerable(train_questions);
  if (recipe_.data.validation)
    validation = read_scored(*recipe_.data.validation, recipe_.data.max_validation_samples);
  const AnswerOptions options = answer_options(validation ? &*validation : nullptr);
  ExtractiveQa module(recipe_.model, options, static_cast<uint64_t>(recipe_.training.seed), models_);
  compare_inputs(
      tokenizer, module.net(),
      {{"data.train", &train_questions}, {"data.validation", validation ? &*validation : nullptr}});
  check_fit(recipe_, tokenizer, module.net());
  module.ship_tokenizer(*recipe_.tokenizer.path, tokenizer.lowercase(), prefix_space(recipe_));
  const auto train_set = tokenize(train_questions, tokenizer, /*is_scored=*/false);
  const auto validation_set = validation ? tokenize(*validation, tokenizer, /*is_scored=*/true) : nullptr;
  if (validation_set) module.evaluate_on(*validation, *validation_set);
  train_questions = {};  // frees the texts, which are no longer needed
  return fit_module(recipe_, module, *train_set, validation_set.get(), mesh_, device_, callbacks);
}

void QuestionAnswering::test() {
  const RunFolder folder(recipe_.output);
  ModelConfig trained;
  trained.path = folder.model();
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, folder.model());
  if (!trained_labels(models_, heads::question_answering, folder.model()))
    throw DataError("{}: the model has no question answering head", folder.model().string());
  const QuestionSet questions = read_scored(*recipe_.data.test, recipe_.data.max_test_samples);
  const AnswerOptions options = answer_options(&questions);
  ExtractiveQa module(trained, options, 0, models_);
  compare_inputs(tokenizer, module.net(), {{"data.test", &questions}});
  check_fit(recipe_, tokenizer, module.net());
  const auto dataset = tokenize(questions, tokenizer, /*is_scored=*/true);
  module.evaluate_on(questions, *dataset);
  const Evaluation evaluation = evaluate_for_test(recipe_, module, *dataset, mesh_, device_);
  if (mesh_.world().rank() != 0) return;
  const auto answers = module.answers(evaluation.rows);
  const Metrics metrics = questions.has_gold ? module.metrics(evaluation.rows) : Metrics();
  require_finite_loss(recipe_, metrics);
  write_predictions(questions, answers, options.null_answers);
  if (!questions.has_gold) {
    log::info("{} does not say which answers are right: predictions only", questions.name);
    std::filesystem::remove(folder.path() / "test_results.json");  // from other data
  } else {
    nlohmann::ordered_json results = squad_scores(questions, answers, options.null_answers);
    results["loss"] = metrics.at("loss");
    folder.write_json("test_results.json", results);
    log::info("test       {}", metrics_text(metrics));
  }
  log::info("predictions {}", (folder.path() / "predictions.json").string());
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
  const RunFolder folder(recipe_.output);
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

}  // namespace stretto
