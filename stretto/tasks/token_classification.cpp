#include "stretto/tasks/token_classification.h"

#include <algorithm>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/config/data_names.h"
#include "stretto/config/tasks/new_tagger.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/corpus/tagged.h"
#include "stretto/data/summary.h"
#include "stretto/metrics/spans.h"
#include "stretto/models/capabilities.h"
#include "stretto/tasks/fine_tuning.h"
#include "stretto/tasks/new_tagger.h"
#include "stretto/tasks/preparation.h"
#include "stretto/tasks/token_tagging.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/trainer/folder/run_folder.h"

namespace stretto::tasks {
namespace {

using corpus::TaggedCorpus;

// A word as a column of a CoNLL file; words of JSON Lines may contain any character.
std::string conll_column(std::string word) {
  for (char& c : word)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  return trim(word).empty() ? "_" : word;
}

std::string describe_states(const KeptStates& train, const KeptStates* validation) {
  const int64_t bytes = train.bytes() + (validation == nullptr ? 0 : validation->bytes());
  if (bytes == 0)
    return "states     of the frozen transformer are computed in each epoch (token_classification.embeddings_storage_mode: none)";
  return fmt::format("states     of the frozen transformer are kept, at most {}",
                     human_bytes(static_cast<double>(bytes)));
}

data::LongSentences of_dataset(LongSentences setting) {
  if (setting == LongSentences::window) return data::LongSentences::window;
  return setting == LongSentences::cut ? data::LongSentences::cut : data::LongSentences::refuse;
}

class TokenClassification : public FineTuning<TaggedCorpus, data::TaggedDataset, TokenTagging> {
 public:
  explicit TokenClassification(const TaskContext& context)
      : FineTuning(context, {.head = "token classification",
                             .unlabelled = "has no tags",
                             .predictions = "predictions.txt",
                             .metrics = {"loss", "precision", "recall", "f1", "f1_macro", "accuracy"}}),
        settings_(recipe_.task_settings.as<TokenClassificationConfig>()) {}

 private:
  TrainingFiles read_for_training() override;
  TaggedCorpus read_for_test(const std::vector<std::string>& labels) override;
  bool has_labels(const TaggedCorpus& corpus) const override { return corpus.has_tags; }
  std::string content_hash(const TaggedCorpus& corpus) const override { return corpus::content_hash(corpus); }
  StartingModel starting_model(const TaggedCorpus& train) override;
  std::unique_ptr<TokenTagging> make_module(const ModuleArguments& arguments) override {
    return std::make_unique<TokenTagging>(arguments.model, arguments.labels, arguments.seed, models_,
                                          arguments.ranks);
  }
  void prepare(TokenTagging& module, const std::filesystem::path& tokenizer,
               const TaggedCorpus* train) override;
  std::unique_ptr<data::TaggedDataset> tokenize(const TaggedCorpus& corpus, const TextModel& model,
                                                const text::Tokenizer& tokenizer,
                                                bool is_scored) const override;
  void describe(const TaggedCorpus& corpus, const data::TaggedDataset& dataset) const override;
  void evaluate_on(TokenTagging& module, const TaggedCorpus&,
                   const data::TaggedDataset& dataset) const override {
    module.evaluate_on(dataset);
  }
  void before_fit(TokenTagging& module, const data::TaggedDataset& train,
                  const data::TaggedDataset* validation) const override;
  TestResults write_results(const TaggedCorpus& corpus, const TokenTagging& module,
                            const Predictions& predictions, const Metrics& metrics) const override;

  std::optional<std::vector<std::string>> tags_of_model() const;
  // Reads the file of a setting.
  TaggedCorpus read(const char* setting, const std::filesystem::path& file,
                    const std::optional<std::vector<std::string>>& trained_tags, bool require_tags) const;
  void check_model(const TextModel& model) const;
  std::shared_ptr<KeptStates> kept_states(const data::TaggedDataset* dataset, const TextModel& model) const;
  void warn_of_numbers(const TaggedCorpus& train) const;
  TokenTagging::LossOptions loss_options(const TokenTagging& module) const;
  void write_predictions(const TaggedCorpus& corpus,
                         const std::vector<std::vector<std::string>>& predicted) const;

  const TokenClassificationConfig& settings_;
  std::optional<text::Tokenizer> words_;  // of words that the model reads besides tokens
};

// The tags of the model that training starts from, if it is a tagger.
std::optional<std::vector<std::string>> TokenClassification::tags_of_model() const {
  if (!recipe_.model.path) return std::nullopt;
  return trained_labels(models_, head(), *recipe_.model.path);
}

// Tags that are numbers are named by the recipe, else by the tags of the model.
TaggedCorpus TokenClassification::read(const char* setting, const std::filesystem::path& file,
                                       const std::optional<std::vector<std::string>>& trained_tags,
                                       bool require_tags) const {
  corpus::TaggedOptions options;
  options.token = recipe_.data.text.value_or("");
  options.tag = recipe_.data.label.value_or("");
  options.names = names_of_words();
  options.names.set("token", recipe_.origins.label("data.text"));
  options.names.set("tag", recipe_.origins.label("data.label"));
  options.tag_names = settings_.tag_names;
  options.numbers_are_names = options.tag_names == std::vector<std::string>{"*"};
  if (options.numbers_are_names) options.tag_names.clear();
  if (options.tag_names.empty() && trained_tags) options.tag_names = *trained_tags;
  if (settings_.tag_scheme != TagConversion::keep)
    options.scheme = corpus::parse_tag_scheme(settings_.tag_scheme.name());
  options.require_tags = require_tags;
  options.encoding = corpus::parse_encoding(recipe_.data.encoding.value_or("utf-8"), data_names);
  return with_label(recipe_.origins.label(setting), [&] { return corpus::read_tagged(file, options); });
}

std::unique_ptr<data::TaggedDataset> TokenClassification::tokenize(const TaggedCorpus& corpus,
                                                                   const TextModel& model,
                                                                   const text::Tokenizer& tokenizer,
                                                                   bool is_scored) const {
  const bool given = recipe_.origins.given("token_classification.stride");
  const WordReader reader = word_reader_of(model);
  const data::TaggedDatasetOptions options = {
      .max_length = recipe_.data.max_length,
      .long_sentences = of_dataset(settings_.long_sentences),
      .stride = given ? settings_.stride : std::min(settings_.stride, recipe_.data.max_length / 4),
      .label_all_tokens = settings_.label_all_tokens,
      .characters = reader.characters,
      .whole_words = reader.whole_words,
      .words = words_ ? &*words_ : nullptr,
      .context = {.words = settings_.context_size,
                  .within_document = settings_.respect_document_boundaries,
                  .separator = data::separator_id(reader.separator, tokenizer),
                  .marked = !is_scored && settings_.context_dropout > 0},
      .cache = recipe_.data.cache.value_or(recipe_.output / "cache"),
      .pad_to_multiple_of = recipe_.data.pad_to_multiple_of,
      .names = names_of_words()};
  return std::make_unique<data::TaggedDataset>(corpus, data::LabelSet(model.labels()), tokenizer, options);
}

void TokenClassification::describe(const TaggedCorpus& corpus, const data::TaggedDataset& dataset) const {
  log::info(
      "data       {}: {}, {}; {}", corpus.name, counted(std::ssize(corpus.sentences), "sentence"),
      counted(corpus.tokens(), "word"),
      corpus.has_tags ? fmt::format("{} ({})", counted(corpus.spans(), "span"), corpus.columns) : "no tags");
  const std::string lengths =
      data::describe_lengths(data::lengths_of(dataset), recipe_.data.max_length, data_names);
  // truncation or splitting is reported below
  log::info("lengths    {}", lengths.substr(0, lengths.find(';')));
  if (dataset.windows() > 0)
    log::info("windows    {} of {} samples are windows of sentences of more than {} tokens",
              dataset.windows(), dataset.size(), recipe_.data.max_length);
  if (dataset.unpredicted_words() > 0)
    log::warning("{}: {} behind data.max_length: {} are left out (token_classification.long_sentences: cut)",
                 corpus.name, counted(dataset.unpredicted_words(), "word"), recipe_.data.max_length);
}

// Numbers may be classes, but they form no spans for which precision, recall and f1 could be computed.
void TokenClassification::warn_of_numbers(const TaggedCorpus& train) const {
  const auto names = train.tag_names();
  const auto is_number = [](const std::string& name) { return parse_int(name).has_value(); };
  if (!is_first() || names.empty() || !std::ranges::all_of(names, is_number)) return;
  log::warning(
      "{}: the tags are numbers without names, so that f1 does not count entities; name them: token_classification.tag_names: [O, B-PER, I-PER, ...], or write names into the files",
      train.name);
}

// The model and the tokenizer of the recipe, or those of a new tagger.
StartingModel TokenClassification::starting_model(const TaggedCorpus& train) {
  ModelConfig model = recipe_.model;
  if (!is_new_tagger(model)) return {model, *recipe_.tokenizer.path};
  std::filesystem::path folder;
  mesh_.world().rank_0_first("making the tagger", [&] { folder = make_new_tagger(recipe_, train); });
  if (folder.empty()) folder = make_new_tagger(recipe_, train);
  // Word vectors, or a transformer's weights.
  const bool has_weights = std::filesystem::exists(folder / "model.safetensors");
  if (has_weights || read_new_tagger(recipe_).transformer) {
    model.config.reset();
    model.path = folder;
  } else {
    model.config = folder / "config.json";
  }
  return {model, folder};
}

TokenTagging::LossOptions TokenClassification::loss_options(const TokenTagging& module) const {
  const std::string name = "token_classification.loss_weights";
  if (module.net().capabilities().sequence_labeller != nullptr && !settings_.loss_weights.empty())
    throw ConfigError(
        "{}: the model has a conditional random field, whose loss is per sentence, not per tag; remove this",
        recipe_.origins.label(name));
  return {label_weights(recipe_, name, settings_.loss_weights, "tag", module.net().labels()),
          settings_.loss_average == LossAverage::sentences};
}

// Refuses settings that the model does not use.
void TokenClassification::check_model(const TextModel& model) const {
  const auto refuse = [&](const char* setting, const char* why) {
    throw ConfigError("{}: {}", recipe_.origins.label(std::string("token_classification.") + setting), why);
  };
  if (settings_.context_size > 0 && !word_reader_of(model).reads_context)
    refuse(
        "context_size",
        "only a transformer reads neighbouring sentences; remove this, or set sequence_tagger.transformer");
  if (settings_.context_dropout > 0 && settings_.context_size == 0)
    refuse("context_dropout", "sentences have no context to leave out; set context_size, or remove this");
  if (settings_.context_dropout > 0 && settings_.embeddings_storage_mode != StateStorage::none)
    refuse(
        "context_dropout",
        "the states of a sentence differ from epoch to epoch, so they cannot be kept; set embeddings_storage_mode: none");
  if (settings_.embeddings_storage_mode == StateStorage::none) return;
  if (model.capabilities().frozen_states == nullptr)
    refuse(
        "embeddings_storage_mode",
        "only states of a frozen transformer are kept; remove this, or train a sequence-tagger with fine_tune: false");
  if (settings_.embeddings_storage_mode == StateStorage::gpu && device_.is_cpu())
    refuse("embeddings_storage_mode", "this run computes on the CPU; set cpu");
}

// Null if nothing of the model is frozen.
std::shared_ptr<KeptStates> TokenClassification::kept_states(const data::TaggedDataset* dataset,
                                                             const TextModel& model) const {
  const FrozenStates* const states = model.capabilities().frozen_states;
  if (dataset == nullptr || states == nullptr) return nullptr;
  return std::make_shared<KeptStates>(settings_.embeddings_storage_mode, dataset->words(), states->width(),
                                      compute_dtype(recipe_.training.precision), mesh_, device_);
}

TokenClassification::TrainingFiles TokenClassification::read_for_training() {
  const auto trained_tags = tags_of_model();
  TrainingFiles files{.train = read("data.train", *recipe_.data.train, trained_tags, true)};
  if (recipe_.data.validation) {
    files.validation = read("data.validation", *recipe_.data.validation, trained_tags, true);
    keep_first(files.validation->sentences, recipe_.data.max_validation_samples);
  }
  warn_of_numbers(files.train);
  warn_of_similar_labels(mesh_, files.train.name, data::label_uses(files.train));
  files.labels = trained_tags.value_or(files.train.tag_names());  // includes sentences that are omitted now
  if (files.labels.size() < 2 && !trained_tags)
    throw DataError("{}: all words have the tag \"{}\"; expected tags of spans, such as B-PER, besides O",
                    files.train.name, files.labels.empty() ? "" : files.labels.front());
  keep_first(files.train.sentences, recipe_.data.max_train_samples);
  return files;
}

TaggedCorpus TokenClassification::read_for_test(const std::vector<std::string>& labels) {
  TaggedCorpus corpus = read("data.test", *recipe_.data.test, labels, false);
  keep_first(corpus.sentences, recipe_.data.max_test_samples);
  return corpus;
}

void TokenClassification::prepare(TokenTagging& module, const std::filesystem::path& tokenizer,
                                  const TaggedCorpus* train) {
  if (train != nullptr) {
    module.set_loss(loss_options(module));
    check_model(module.net());
  }
  if (word_reader_of(module.net()).word_ids) words_ = text::Tokenizer::load(tokenizer / text::words_folder);
}

void TokenClassification::before_fit(TokenTagging& module, const data::TaggedDataset& train,
                                     const data::TaggedDataset* validation) const {
  const auto train_states = kept_states(&train, module.net()),
             validation_states = kept_states(validation, module.net());
  module.take_states(train_states, validation_states);
  if (settings_.context_dropout > 0) module.drop_context(train, settings_.context_dropout);
  if (train_states && is_first()) log::info("{}", describe_states(*train_states, validation_states.get()));
}

TestResults TokenClassification::write_results(const TaggedCorpus& corpus, const TokenTagging& module,
                                               const Predictions& predictions, const Metrics& metrics) const {
  const auto predicted = module.predicted(predictions);
  write_predictions(corpus, predicted);
  if (metrics.empty()) return {};
  const metrics::SpanScores scores(module.gold(), predicted);
  TestResults results{scores.to_json(), {scores.table()}};
  results.record["loss"] = metrics.at("loss");
  return results;
}

void TokenClassification::write_predictions(const TaggedCorpus& corpus,
                                            const std::vector<std::vector<std::string>>& predicted) const {
  std::string conll, lines;
  for (size_t i = 0; i < corpus.sentences.size(); ++i) {
    const corpus::TaggedSentence& sentence = corpus.sentences[i];
    nlohmann::ordered_json record = {
        {"line", sentence.line}, {"tokens", sentence.tokens}, {"tags", predicted[i]}};
    if (corpus.has_tags) record["gold"] = sentence.tags;
    record["spans"] = nlohmann::ordered_json::array();
    for (const corpus::Span& span : corpus::lenient_spans(predicted[i]))
      record["spans"].push_back({{"type", span.type}, {"begin", span.begin}, {"end", span.end}});
    lines += record.dump() + "\n";
    for (size_t k = 0; k < sentence.tokens.size(); ++k) {
      conll += conll_column(sentence.tokens[k]);
      if (corpus.has_tags) conll += "\t" + sentence.tags[k];
      conll += "\t" + predicted[i][k] + "\n";
    }
    conll += '\n';
  }
  const trainer::RunFolder folder(recipe_.output);
  folder.write_text("predictions.txt", conll);
  folder.write_text("predictions.jsonl", lines);
}

}  // namespace

std::unique_ptr<Task> make_token_classification(const TaskContext& context) {
  return std::make_unique<TokenClassification>(context);
}

}  // namespace stretto::tasks
