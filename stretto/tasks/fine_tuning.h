#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/config/task_kind.h"
#include "stretto/data/dataset.h"
#include "stretto/tasks/model_module.h"
#include "stretto/tasks/task.h"
#include "stretto/text/tokenizer.h"

namespace stretto {

// The names of a task's parts in messages.
struct FineTuningNames {
  std::string head;         // "classification": the model has no classification head
  std::string unlabelled;   // "has no tags": FILE has no tags: predictions only
  std::string predictions;  // the file in the run folder that is logged
  // The metrics that evaluations may have, to which settings can then refer; empty: any.
  std::vector<std::string> metrics = {};
};

// The model that training starts from, and the folder or file of its tokenizer.
struct StartingModel {
  ModelConfig model;
  std::filesystem::path tokenizer;
};

// The results of a test, in addition to the predictions.
struct TestResults {
  nlohmann::ordered_json record = {};   // test_results.json
  std::vector<std::string> lines = {};  // logged after the metrics, except empty ones
};

// The part of FineTuning that does not depend on its corpus, dataset and Module.
class FineTuningProgram : public Task {
 protected:
  // A data file that a rank has read; it must be the same on all ranks.
  struct ReadFile {
    std::string setting;  // "data.train"
    std::string content_hash;
    std::string name;
  };

  FineTuningProgram(const TaskContext& context, FineTuningNames names)
      : recipe_(context.recipe),
        mesh_(context.mesh),
        device_(context.device),
        models_(context.models),
        names_(std::move(names)) {}

  // Throws ConfigError for settings that refer to other metrics than FineTuningNames::metrics, or to one
  // whose better direction nothing tells (trainer/run/monitor.h).
  void require_metrics() const;
  bool is_first() const { return mesh_.world().rank() == 0; }
  const std::string& head() const { return task_kind(recipe_).head; }
  std::filesystem::path trained_model() const { return recipe_.output / "model"; }
  // The labels of trained_model(). Throws DataError if it lacks the head.
  std::vector<std::string> labels_of_trained_model() const;

  // The tokenizer in `folder`, with the settings of the recipe's tokenizer section.
  text::Tokenizer load_tokenizer(const std::filesystem::path& folder) const;
  // The maximum number of tokens per sample: data.max_length, unless a task uses the model's limit.
  virtual int64_t max_length(const TextModel&) const { return recipe_.data.max_length; }
  // Throws ConfigError if ranks have read different inputs, or if the tokenizer's ids or max_length() exceed
  // the model's limits. Collective.
  void check_inputs(const text::Tokenizer& tokenizer, const TextModel& model,
                    const std::vector<ReadFile>& files) const;
  // Makes Module::save copy the tokenizer.
  void ship_tokenizer(ModelModule& module, const std::filesystem::path& folder,
                      const text::Tokenizer& tokenizer) const;
  // Trains by the recipe. Collective.
  FitResult fit(Module& module, const data::Dataset& train, const data::Dataset* validation,
                const std::vector<std::shared_ptr<Callback>>& callbacks) const;
  // The predictions of the dataset, on rank 0, which writes test_summary.json. Collective.
  Predictions evaluate(Module& module, const data::Dataset& dataset) const;
  // Calls make(), which makes the recipe's model. ConfigErrors on the section model.config begin with the
  // position of the key in the recipe.
  void with_model_places(const std::function<void()>& make) const;
  // Logs the folder of texts that are tokenised already, if there is one, unless steps have been recorded: a
  // run that is refused before its first step leaves only these texts.
  void log_kept_texts() const;
  // Throws DataError for a loss that is not finite, unless checkpoint.allow_nonfinite is set: activations may
  // overflow although all weights are finite.
  void require_finite_loss(const Metrics& metrics) const;
  // Writes and logs the results of a test; metrics: empty if the file has no labels.
  void record(const TestResults& results, const Metrics& metrics, const std::string& file) const;

  const Recipe& recipe_;
  const Mesh& mesh_;
  const at::Device device_;
  const ModelRegistry& models_;

 private:
  const FineTuningNames names_;
};

// The program of tasks that fine-tune a model folder with a head (TaskKind::head) on data files. train() and
// test() are the same for all tasks; virtual functions implement the differences. Corpus: the content of a
// file; it has a `name`, the file's, and is default-constructible. Data: its tokenised samples, a
// data::Dataset. Tuned: the Module, a ModelModule. Every rank makes the same calls.
template <class Corpus, class Data, class Tuned>
class FineTuning : public FineTuningProgram {
 public:
  // Task::train by the functions below. Throws their errors and those of Trainer::fit.
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
    uint64_t seed;             // of weights that the model's folder lacks
    const Corpus* scored;      // the corpus with which predictions are compared; null: nothing is evaluated
    bool is_trained;           // whether the model is only tested
    nn::TensorParallel ranks;  // among which the model is divided
  };

  using FineTuningProgram::FineTuningProgram;

  // Reads data.train and data.validation, up to the recipe's limits on samples. Throws DataError for files
  // that the task cannot learn from.
  virtual TrainingFiles read_for_training() = 0;
  // Reads data.test for a model with these labels. The file need not have any.
  virtual Corpus read_for_test(const std::vector<std::string>& labels) = 0;
  virtual bool has_labels(const Corpus& corpus) const = 0;
  // A hash of all that training reads of a corpus.
  virtual std::string content_hash(const Corpus& corpus) const = 0;

  // The model that training starts from; by default the recipe's.
  virtual StartingModel starting_model(const Corpus&) { return {recipe_.model, *recipe_.tokenizer.path}; }
  virtual std::unique_ptr<Tuned> make_module(const ModuleArguments& arguments) = 0;
  // Called before samples are tokenised. train: null in a test.
  virtual void prepare(Tuned&, const std::filesystem::path& /*tokenizer*/, const Corpus* /*train*/) {}
  // is_scored: predictions are compared with the corpus.
  virtual std::unique_ptr<Data> tokenize(const Corpus& corpus, const TextModel& model,
                                         const text::Tokenizer& tokenizer, bool is_scored) const = 0;
  // Logs a description of the samples, on rank 0.
  virtual void describe(const Corpus& corpus, const Data& dataset) const = 0;

  // Sets the dataset that is evaluated from now on.
  virtual void evaluate_on(Tuned&, const Corpus&, const Data&) const {}
  // Whether evaluations during training read the validation corpus; otherwise its memory is freed.
  virtual bool evaluations_read_corpus() const { return false; }
  virtual void before_fit(Tuned&, const Data& /*train*/, const Data* /*validation*/) const {}

  // Writes the predictions of a test, on rank 0. `metrics`: empty if the corpus has no labels; no results are
  // then needed.
  virtual TestResults write_results(const Corpus& corpus, const Tuned& module, const Predictions& predictions,
                                    const Metrics& metrics) const = 0;

 private:
  nn::TensorParallel ranks_of_layers() const { return nn::TensorParallel::of(mesh_.tensor_parallel()); }
  ReadFile read_file(const char* setting, const Corpus& corpus) const {
    return {setting, content_hash(corpus), corpus.name};
  }
  // Rank 0 tokenises and writes the cache; the other ranks map it.
  std::unique_ptr<Data> make_dataset(const Corpus& corpus, const TextModel& model,
                                     const text::Tokenizer& tokenizer, bool is_scored) const;
};

template <class Corpus, class Data, class Tuned>
FitResult FineTuning<Corpus, Data, Tuned>::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  require_metrics();
  TrainingFiles files = read_for_training();
  std::optional<Corpus>& validation = files.validation;
  const StartingModel start = starting_model(files.train);
  const text::Tokenizer tokenizer = load_tokenizer(start.tokenizer);
  std::unique_ptr<Tuned> module;
  with_model_places([&] {
    module = make_module({.model = start.model,
                          .labels = files.labels,
                          .seed = static_cast<uint64_t>(recipe_.training.seed),
                          .scored = validation ? &*validation : nullptr,
                          .is_trained = false,
                          .ranks = ranks_of_layers()});
  });
  const TextModel& model = module->net();
  std::vector<ReadFile> read = {read_file("data.train", files.train)};
  if (validation) read.push_back(read_file("data.validation", *validation));
  check_inputs(tokenizer, model, read);
  ship_tokenizer(*module, start.tokenizer, tokenizer);
  prepare(*module, start.tokenizer, &files.train);
  try {
    const auto train_set = make_dataset(files.train, model, tokenizer, /*is_scored=*/false);
    const auto validation_set =
        validation ? make_dataset(*validation, model, tokenizer, /*is_scored=*/true) : nullptr;
    if (validation_set) evaluate_on(*module, *validation, *validation_set);
    before_fit(*module, *train_set, validation_set.get());
    files.train = {};  // frees the texts, which are no longer needed
    if (!evaluations_read_corpus()) validation.reset();
    return fit(*module, *train_set, validation_set.get(), callbacks);
  } catch (const Error&) {
    log_kept_texts();
    throw;
  }
}

template <class Corpus, class Data, class Tuned>
void FineTuning<Corpus, Data, Tuned>::test() {
  ModelConfig trained;
  trained.path = trained_model();
  const text::Tokenizer tokenizer = load_tokenizer(trained_model());
  const std::vector<std::string> labels = labels_of_trained_model();
  const Corpus corpus = read_for_test(labels);
  const std::unique_ptr<Tuned> module = make_module({.model = trained,
                                                     .labels = labels,
                                                     .seed = 0,
                                                     .scored = &corpus,
                                                     .is_trained = true,
                                                     .ranks = ranks_of_layers()});
  check_inputs(tokenizer, module->net(), {read_file("data.test", corpus)});
  prepare(*module, trained_model(), nullptr);
  const auto dataset = make_dataset(corpus, module->net(), tokenizer, /*is_scored=*/true);
  evaluate_on(*module, corpus, *dataset);
  const Predictions predictions = evaluate(*module, *dataset);
  if (!is_first()) return;
  const Metrics metrics = has_labels(corpus) ? module->metrics(predictions) : Metrics();
  require_finite_loss(metrics);
  record(write_results(corpus, *module, predictions, metrics), metrics, corpus.name);
}

template <class Corpus, class Data, class Tuned>
std::unique_ptr<Data> FineTuning<Corpus, Data, Tuned>::make_dataset(const Corpus& corpus,
                                                                    const TextModel& model,
                                                                    const text::Tokenizer& tokenizer,
                                                                    bool is_scored) const {
  std::unique_ptr<Data> dataset;
  mesh_.world().rank_0_first("tokenising", [&] { dataset = tokenize(corpus, model, tokenizer, is_scored); });
  if (!dataset) dataset = tokenize(corpus, model, tokenizer, is_scored);
  if (is_first()) describe(corpus, *dataset);
  return dataset;
}

}  // namespace stretto
