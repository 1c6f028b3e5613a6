#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/config/task_kind.h"
#include "stretto/tasks/preparation.h"
#include "stretto/tasks/task.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/summary.h"

namespace stretto {

// What messages call parts of a task.
struct FineTuningNames {
  std::string head;         // "classification": the model has no classification head
  std::string unlabelled;   // "has no tags": FILE has no tags: predictions only
  std::string predictions;  // the file in the run folder that is logged
};

// The model that training starts from, and the folder or file of its tokenizer.
struct StartingModel {
  ModelConfig model;
  std::filesystem::path tokenizer;
};

// What a test has found, besides the predictions.
struct TestResults {
  nlohmann::ordered_json record = {};   // test_results.json
  std::vector<std::string> lines = {};  // logged after the metrics; empty ones are not
};

// The program of tasks that fine-tune a model folder with a head on data files: train() and test() are the
// same for all of them; what differs is virtual. Corpus: the content of a file, with its name. Data: its
// tokenised samples, a data::Dataset. Tuned: the Module, a ModelModule. Every rank makes the same calls.
template <class Corpus, class Data, class Tuned>
class FineTuning : public Task {
 public:
  FitResult train(const std::vector<std::shared_ptr<Callback>>& callbacks) final;
  void test() final;

 protected:
  struct TrainingFiles {
    Corpus train;
    std::optional<Corpus> validation = std::nullopt;
    std::vector<std::string> labels = {};  // of the head
  };
  struct ModuleArguments {
    const ModelConfig& model;
    const std::vector<std::string>& labels;
    uint64_t seed;         // of weights that the model's folder lacks
    const Corpus* scored;  // what predictions are compared with; null: nothing is evaluated
    bool is_trained;       // whether the model is only tested
  };

  FineTuning(const TaskContext& context, FineTuningNames names)
      : recipe_(context.recipe),
        mesh_(context.mesh),
        device_(context.device),
        models_(context.models),
        names_(std::move(names)) {}

  // Reads data.train and data.validation, as far as the recipe's limits go. Throws DataError for files that
  // the task cannot learn from.
  virtual TrainingFiles read_for_training() = 0;
  // Reads data.test for a model with these labels. The file need not have any.
  virtual Corpus read_for_test(const std::vector<std::string>& labels) = 0;
  virtual bool has_labels(const Corpus& corpus) const = 0;
  virtual std::string content_hash(const Corpus& corpus) const = 0;

  // By default the recipe's.
  virtual StartingModel starting_model(const Corpus&) { return {recipe_.model, *recipe_.tokenizer.path}; }
  virtual std::unique_ptr<Tuned> make_module(const ModuleArguments& arguments) = 0;
  // Called before samples are tokenised. train: null in a test.
  virtual void prepare(Tuned&, const std::filesystem::path& /*tokenizer*/, const Corpus* /*train*/) {}
  // is_scored: predictions are compared with the corpus.
  virtual std::unique_ptr<Data> tokenize(const Corpus& corpus, const TextModel& model,
                                         const text::Tokenizer& tokenizer, bool is_scored) const = 0;
  // Logs what the samples are, on rank 0.
  virtual void describe(const Corpus& corpus, const Data& dataset) const = 0;

  // The dataset is evaluated from now on.
  virtual void evaluate_on(Tuned&, const Corpus&, const Data&) const {}
  // Whether evaluations during training read the validation corpus; else its memory is freed.
  virtual bool evaluations_read_corpus() const { return false; }
  virtual void before_fit(Tuned&, const Data& /*train*/, const Data* /*validation*/) const {}

  // Writes the predictions of a test, on rank 0. metrics: empty if the corpus has no labels; then no results
  // are needed.
  virtual TestResults write_results(const Corpus& corpus, const Tuned& module, const Tensor& rows,
                                    const Metrics& metrics) const = 0;

  bool is_first() const { return mesh_.world().rank() == 0; }
  const std::string& head() const { return task_kind(recipe_).head; }

  const Recipe& recipe_;
  const Mesh& mesh_;
  const at::Device device_;
  const ModelRegistry& models_;

 private:
  void compare_inputs(const text::Tokenizer& tokenizer, const TextModel& model,
                      const std::vector<std::pair<const char*, const Corpus*>>& files) const;
  // Rank 0 tokenises and writes the cache; the other ranks map it.
  std::unique_ptr<Data> make_dataset(const Corpus& corpus, const TextModel& model,
                                     const text::Tokenizer& tokenizer, bool is_scored) const;

  const FineTuningNames names_;
};

template <class Corpus, class Data, class Tuned>
FitResult FineTuning<Corpus, Data, Tuned>::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  TrainingFiles files = read_for_training();
  std::optional<Corpus>& validation = files.validation;
  const StartingModel start = starting_model(files.train);
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, start.tokenizer);
  const std::unique_ptr<Tuned> module = make_module({.model = start.model,
                                                     .labels = files.labels,
                                                     .seed = static_cast<uint64_t>(recipe_.training.seed),
                                                     .scored = validation ? &*validation : nullptr,
                                                     .is_trained = false});
  const TextModel& model = module->net();
  compare_inputs(tokenizer, model,
                 {{"data.train", &files.train}, {"data.validation", validation ? &*validation : nullptr}});
  check_fit(recipe_, tokenizer, model);
  module->ship_tokenizer(start.tokenizer, tokenizer.lowercase(), prefix_space(recipe_));
  prepare(*module, start.tokenizer, &files.train);
  const auto train_set = make_dataset(files.train, model, tokenizer, /*is_scored=*/false);
  const auto validation_set =
      validation ? make_dataset(*validation, model, tokenizer, /*is_scored=*/true) : nullptr;
  if (validation_set) evaluate_on(*module, *validation, *validation_set);
  before_fit(*module, *train_set, validation_set.get());
  files.train = {};  // frees the texts, which are no longer needed
  if (!evaluations_read_corpus()) validation.reset();
  return fit_module(recipe_, *module, *train_set, validation_set.get(), mesh_, device_, callbacks);
}

template <class Corpus, class Data, class Tuned>
void FineTuning<Corpus, Data, Tuned>::test() {
  const RunFolder folder(recipe_.output);
  ModelConfig trained;
  trained.path = folder.model();
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, folder.model());
  const auto labels = trained_labels(models_, head(), folder.model());
  if (!labels) throw DataError("{}: the model has no {} head", folder.model().string(), names_.head);
  const Corpus corpus = read_for_test(*labels);
  const std::unique_ptr<Tuned> module =
      make_module({.model = trained, .labels = *labels, .seed = 0, .scored = &corpus, .is_trained = true});
  compare_inputs(tokenizer, module->net(), {{"data.test", &corpus}});
  check_fit(recipe_, tokenizer, module->net());
  prepare(*module, folder.model(), nullptr);
  const auto dataset = make_dataset(corpus, module->net(), tokenizer, /*is_scored=*/true);
  evaluate_on(*module, corpus, *dataset);
  const Evaluation evaluation = evaluate_for_test(recipe_, *module, *dataset, mesh_, device_);
  if (!is_first()) return;
  const Metrics metrics = has_labels(corpus) ? module->metrics(evaluation.rows) : Metrics();
  require_finite_loss(recipe_, metrics);
  const TestResults results = write_results(corpus, *module, evaluation.rows, metrics);
  if (metrics.empty()) {
    log::info("{} {}: predictions only", corpus.name, names_.unlabelled);
    std::filesystem::remove(folder.path() / "test_results.json");  // from other data
  } else {
    folder.write_json("test_results.json", results.record);
    log::info("test       {}", metrics_text(metrics));
    for (const std::string& line : results.lines)
      if (!line.empty()) log::info("{}", line);
  }
  log::info("predictions {}", (folder.path() / names_.predictions).string());
}

// Compares over ranks what each has read from its files.
template <class Corpus, class Data, class Tuned>
void FineTuning<Corpus, Data, Tuned>::compare_inputs(
    const text::Tokenizer& tokenizer, const TextModel& model,
    const std::vector<std::pair<const char*, const Corpus*>>& files) const {
  std::vector<Input> inputs = inputs_of(tokenizer, model);
  for (const auto& [name, corpus] : files)
    if (corpus != nullptr) inputs.push_back({name, "contents " + content_hash(*corpus), corpus->name});
  require_same_inputs(mesh_.world(), inputs);
}

template <class Corpus, class Data, class Tuned>
std::unique_ptr<Data> FineTuning<Corpus, Data, Tuned>::make_dataset(const Corpus& corpus,
                                                                    const TextModel& model,
                                                                    const text::Tokenizer& tokenizer,
                                                                    bool is_scored) const {
  auto dataset = on_rank_0_first(mesh_, [&] { return tokenize(corpus, model, tokenizer, is_scored); });
  if (is_first()) describe(corpus, *dataset);
  return dataset;
}

}  // namespace stretto
