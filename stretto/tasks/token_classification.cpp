#include "stretto/tasks/token_classification.h"

#include <algorithm>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/config/data_names.h"
#include "stretto/config/new_tagger.h"
#include "stretto/corpus/tagged.h"
#include "stretto/data/summary.h"
#include "stretto/metrics/spans.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/capabilities.h"
#include "stretto/tasks/new_tagger.h"
#include "stretto/tasks/preparation.h"
#include "stretto/tasks/token_tagging.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/summary.h"

namespace stretto {
namespace {

using corpus::TaggedCorpus;

// The tokenizer of words that the model reads besides tokens, in its folder.
std::optional<text::Tokenizer> words_tokenizer(const TextModel& model, const std::filesystem::path& folder) {
  if (!word_reader_of(model).word_ids) return std::nullopt;
  return text::Tokenizer::load(folder / text::words_folder);
}

// A word as a column of a CoNLL file: words of JSON Lines may hold any character.
std::string conll_column(std::string word) {
  for (char& c : word)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  return trim(word).empty() ? "_" : word;
}

std::string describe(const KeptStates& train, const KeptStates* validation) {
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

class TokenClassification : public Task {
 public:
  explicit TokenClassification(const TaskContext& context)
      : recipe_(context.recipe), mesh_(context.mesh), device_(context.device), models_(context.models) {}

  FitResult train(const std::vector<std::shared_ptr<Callback>>& callbacks) override;
  void test() override;

 private:
  TaggedCorpus read(const std::filesystem::path& file, const std::filesystem::path& model,
                    bool require_tags) const;
  std::unique_ptr<data::TaggedDataset> tokenize(const TaggedCorpus& corpus, const TextModel& model,
                                                const text::Tokenizer& tokenizer,
                                                const text::Tokenizer* words) const;
  void check_model(const TextModel& model) const;
  std::shared_ptr<KeptStates> kept_states(const data::TaggedDataset* dataset, const TextModel& model) const;
  void compare_inputs(const text::Tokenizer& tokenizer, const TextModel& model,
                      std::initializer_list<std::pair<const char*, const TaggedCorpus*>> corpora) const;
  void name_numbers(const std::filesystem::path& model, corpus::TaggedOptions& options) const;
  void warn_of_numbers(const TaggedCorpus& train) const;
  data::LabelSet tags_of(const TaggedCorpus& train) const;
  std::pair<ModelConfig, std::filesystem::path> start(const TaggedCorpus& train) const;
  TokenTagging::LossOptions loss_options(const TokenTagging& module) const;
  void write_predictions(const TaggedCorpus& corpus,
                         const std::vector<std::vector<std::string>>& predicted) const;

  const Recipe& recipe_;
  const Mesh& mesh_;
  at::Device device_;
  const ModelRegistry& models_;
};

// Names tags that are numbers: as the recipe says, else by the classes of the model in folder `model`, if it is a tagger.
void TokenClassification::name_numbers(const std::filesystem::path& model,
                                       corpus::TaggedOptions& options) const {
  options.tag_names = recipe_.token_classification.tag_names;
  options.numbers_are_names = options.tag_names == std::vector<std::string>{"*"};
  if (options.numbers_are_names) options.tag_names.clear();
  if (!options.tag_names.empty() || model.empty()) return;
  if (const auto trained = trained_labels(models_, heads::token_classification, model))
    options.tag_names = *trained;
}

TaggedCorpus TokenClassification::read(const std::filesystem::path& file, const std::filesystem::path& model,
                                       bool require_tags) const {
  const TokenClassificationConfig& settings = recipe_.token_classification;
  corpus::TaggedOptions options;
  options.token = recipe_.data.text.value_or("");
  options.tag = recipe_.data.label.value_or("");
  options.names = data_names;
  options.names.set("token", recipe_.origins.label("data.text"));
  options.names.set("tag", recipe_.origins.label("data.label"));
  name_numbers(model, options);
  if (settings.tag_scheme != TagConversion::keep)
    options.scheme = corpus::parse_tag_scheme(settings.tag_scheme.name());
  options.require_tags = require_tags;
  options.encoding = corpus::parse_encoding(recipe_.data.encoding.value_or("utf-8"), data_names);
  return corpus::read_tagged(file, options);
}

std::unique_ptr<data::TaggedDataset> TokenClassification::tokenize(const TaggedCorpus& corpus,
                                                                   const TextModel& model,
                                                                   const text::Tokenizer& tokenizer,
                                                                   const text::Tokenizer* words) const {
  const TokenClassificationConfig& settings = recipe_.token_classification;
  const bool given = recipe_.origins.given("token_classification.stride");
  const WordReader reader = word_reader_of(model);
  const data::TaggedDatasetOptions options = {
      .max_length = recipe_.data.max_length,
      .long_sentences = of_dataset(settings.long_sentences),
      .stride = given ? settings.stride : std::min(settings.stride, recipe_.data.max_length / 4),
      .label_all_tokens = settings.label_all_tokens,
      .characters = reader.characters,
      .whole_words = reader.whole_words,
      .words = words,
      .context = {settings.context_size, settings.respect_document_boundaries},
      .cache = recipe_.data.cache.value_or(recipe_.output / "cache"),
      .pad_to_multiple_of = recipe_.data.pad_to_multiple_of,
      .names = data_names};
  auto dataset = on_rank_0_first(mesh_, [&] {
    return std::make_unique<data::TaggedDataset>(corpus, data::LabelSet(model.labels()), tokenizer, options);
  });
  if (mesh_.world().rank() != 0) return dataset;
  log::info(
      "data       {}: {}, {}; {}", corpus.name, counted(std::ssize(corpus.sentences), "sentence"),
      counted(corpus.tokens(), "word"),
      corpus.has_tags ? fmt::format("{} ({})", counted(corpus.spans(), "span"), corpus.columns) : "no tags");
  const std::string lengths =
      data::describe_lengths(data::lengths_of(*dataset), recipe_.data.max_length, data_names);
  log::info("lengths    {}", lengths.substr(0, lengths.find(';')));  // what is cut or split follows
  if (dataset->windows() > 0)
    log::info("windows    {} of {} samples are windows of sentences of more than {} tokens",
              dataset->windows(), dataset->size(), recipe_.data.max_length);
  if (dataset->unpredicted_words() > 0)
    log::warning("{}: {} behind data.max_length: {} are left out (token_classification.long_sentences: cut)",
                 corpus.name, counted(dataset->unpredicted_words(), "word"), recipe_.data.max_length);
  return dataset;
}

// Those of a trained head, else those of the training file, sorted.
data::LabelSet TokenClassification::tags_of(const TaggedCorpus& train) const {
  if (recipe_.model.path) {
    if (const auto labels = trained_labels(models_, heads::token_classification, *recipe_.model.path))
      return data::LabelSet(*labels);
  }
  const auto names = train.tag_names();
  if (names.size() < 2)
    throw DataError("{}: all words have the tag \"{}\"; expected tags of spans, such as B-PER, besides O",
                    train.name, names.empty() ? "" : names.front());
  return data::LabelSet(names);
}

// Numbers may be classes, but there are no spans by which precision, recall and f1 could be counted.
void TokenClassification::warn_of_numbers(const TaggedCorpus& train) const {
  const auto names = train.tag_names();
  const auto is_number = [](const std::string& name) { return parse_int(name).has_value(); };
  if (mesh_.world().rank() != 0 || names.empty() || !std::ranges::all_of(names, is_number)) return;
  log::warning(
      "{}: the tags are numbers without names, so that f1 does not count entities; name them: token_classification.tag_names: [O, B-PER, I-PER, ...], or write names into the files",
      train.name);
}

// The model and the tokenizer of the recipe, or those of a new tagger.
std::pair<ModelConfig, std::filesystem::path> TokenClassification::start(const TaggedCorpus& train) const {
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
  const TokenClassificationConfig& settings = recipe_.token_classification;
  const std::string name = "token_classification.loss_weights";
  if (module.net().capabilities().sequence_labeller != nullptr && !settings.loss_weights.empty())
    throw ConfigError(
        "{}: the model has a conditional random field, whose loss is per sentence, not per tag; remove this",
        recipe_.origins.label(name));
  return {label_weights(recipe_, name, settings.loss_weights, "tag", module.net().labels()),
          settings.loss_average == LossAverage::sentences};
}

// Settings that the model has no use for.
void TokenClassification::check_model(const TextModel& model) const {
  const TokenClassificationConfig& settings = recipe_.token_classification;
  const auto refuse = [&](const char* setting, const char* why) {
    throw ConfigError("{}: {}", recipe_.origins.label(std::string("token_classification.") + setting), why);
  };
  if (settings.context_size > 0 && !word_reader_of(model).reads_context)
    refuse(
        "context_size",
        "only a transformer reads neighbouring sentences; remove this, or set sequence_tagger.transformer");
  if (settings.embeddings_storage_mode == StateStorage::none) return;
  if (model.capabilities().frozen_states == nullptr)
    refuse(
        "embeddings_storage_mode",
        "only states of a frozen transformer are kept; remove this, or train a sequence-tagger with fine_tune: false");
  if (settings.embeddings_storage_mode == StateStorage::gpu && device_.is_cpu())
    refuse("embeddings_storage_mode", "this run computes on the CPU; set cpu");
}

// Null if nothing of the model is frozen.
std::shared_ptr<KeptStates> TokenClassification::kept_states(const data::TaggedDataset* dataset,
                                                             const TextModel& model) const {
  const FrozenStates* const states = model.capabilities().frozen_states;
  if (dataset == nullptr || states == nullptr) return nullptr;
  return std::make_shared<KeptStates>(recipe_.token_classification.embeddings_storage_mode, dataset->words(),
                                      states->width(), compute_dtype(recipe_.training.precision), mesh_,
                                      device_);
}

void TokenClassification::compare_inputs(
    const text::Tokenizer& tokenizer, const TextModel& model,
    std::initializer_list<std::pair<const char*, const TaggedCorpus*>> corpora) const {
  std::vector<Input> inputs = inputs_of(tokenizer, model);
  for (const auto& [name, corpus] : corpora)
    if (corpus != nullptr)
      inputs.push_back({name, "contents " + corpus::content_hash(*corpus), corpus->name});
  require_same_inputs(mesh_.world(), inputs);
}

FitResult TokenClassification::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  const std::filesystem::path model_path = recipe_.model.path.value_or("");
  TaggedCorpus train_corpus = read(*recipe_.data.train, model_path, true);
  std::optional<TaggedCorpus> validation_corpus;
  if (recipe_.data.validation) {
    validation_corpus = read(*recipe_.data.validation, model_path, true);
    keep_first(validation_corpus->sentences, recipe_.data.max_validation_samples);
  }
  warn_of_numbers(train_corpus);
  warn_of_similar_labels(mesh_, train_corpus.name, data::label_uses(train_corpus));
  const data::LabelSet tags = tags_of(train_corpus);  // also of sentences that are left out now
  keep_first(train_corpus.sentences, recipe_.data.max_train_samples);
  const auto [model, tokenizer_folder] = start(train_corpus);
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, tokenizer_folder);
  TokenTagging module(model, tags.names(), static_cast<uint64_t>(recipe_.training.seed), models_);
  compare_inputs(tokenizer, module.net(),
                 {{"data.train", &train_corpus},
                  {"data.validation", validation_corpus ? &*validation_corpus : nullptr}});
  check_fit(recipe_, tokenizer, module.net());
  module.ship_tokenizer(tokenizer_folder, tokenizer.lowercase(), prefix_space(recipe_));
  module.set_loss(loss_options(module));
  check_model(module.net());
  const auto word_tokenizer = words_tokenizer(module.net(), tokenizer_folder);
  const text::Tokenizer* const words = word_tokenizer ? &*word_tokenizer : nullptr;
  const auto train_set = tokenize(train_corpus, module.net(), tokenizer, words);
  const auto validation_set =
      validation_corpus ? tokenize(*validation_corpus, module.net(), tokenizer, words) : nullptr;
  if (validation_set) module.evaluate_on(*validation_set);
  const auto train_states = kept_states(train_set.get(), module.net()),
             validation_states = kept_states(validation_set.get(), module.net());
  module.take_states(train_states, validation_states);
  if (train_states && mesh_.world().rank() == 0)
    log::info("{}", describe(*train_states, validation_states.get()));
  train_corpus = {};  // frees the words, which are no longer needed
  validation_corpus.reset();
  return fit_module(recipe_, module, *train_set, validation_set.get(), mesh_, device_, callbacks);
}

void TokenClassification::test() {
  const RunFolder folder(recipe_.output);
  ModelConfig trained;
  trained.path = folder.model();
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, folder.model());
  const auto names = trained_labels(models_, heads::token_classification, folder.model());
  if (!names) throw DataError("{}: the model has no token classification head", folder.model().string());
  TaggedCorpus corpus = read(*recipe_.data.test, folder.model(), false);
  keep_first(corpus.sentences, recipe_.data.max_test_samples);
  TokenTagging module(trained, *names, 0, models_);
  compare_inputs(tokenizer, module.net(), {{"data.test", &corpus}});
  check_fit(recipe_, tokenizer, module.net());
  const auto words = words_tokenizer(module.net(), folder.model());
  const auto dataset = tokenize(corpus, module.net(), tokenizer, words ? &*words : nullptr);
  module.evaluate_on(*dataset);
  const Evaluation evaluation = evaluate_for_test(recipe_, module, *dataset, mesh_, device_);
  if (mesh_.world().rank() != 0) return;
  const auto predicted = module.predicted(evaluation.rows);
  const Metrics metrics = corpus.has_tags ? module.metrics(evaluation.rows) : Metrics();
  require_finite_loss(recipe_, metrics);
  write_predictions(corpus, predicted);
  if (!corpus.has_tags) {
    log::info("{} has no tags: predictions only", corpus.name);
    std::filesystem::remove(folder.path() / "test_results.json");  // from other data
  } else {
    const metrics::SpanScores scores(module.gold(), predicted);
    nlohmann::ordered_json results = scores.to_json();
    results["loss"] = metrics.at("loss");
    folder.write_json("test_results.json", results);
    log::info("test       {}", metrics_text(metrics));
    if (const std::string table = scores.table(); !table.empty()) log::info("{}", table);
  }
  log::info("predictions {}", (folder.path() / "predictions.txt").string());
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
    conll += "\n";
  }
  const RunFolder folder(recipe_.output);
  folder.write_text("predictions.txt", conll);
  folder.write_text("predictions.jsonl", lines);
}

}  // namespace

std::unique_ptr<Task> make_token_classification(const TaskContext& context) {
  return std::make_unique<TokenClassification>(context);
}

}  // namespace stretto
