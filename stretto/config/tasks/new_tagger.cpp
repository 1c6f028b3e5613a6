#include "stretto/config/tasks/new_tagger.h"

#include <functional>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/config/tasks/tagger_settings.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/settings/read.h"
#include "stretto/settings/rule.h"
#include "stretto/settings/yaml.h"
#include "stretto/weights/hub_cache.h"

namespace stretto {
namespace {

constexpr const char* new_tagger = "sequence-tagger";  // model.type, or the model_type of a file
constexpr double largest_tagger = 1e6;                 // the largest value of any size

// A settings file, which begins with its model_type.
struct TaggerFile {
  std::string model_type = new_tagger;
  TaggerSettings settings;

  void fields(settings::Fields& field) {
    field("model_type", model_type, "the family", settings::one_of({new_tagger}));
    settings.fields(field);
  }
};

// `given`: whether a setting is in the file; `label`: its position, for messages.
void check(const TaggerSettings& tagger, const std::function<bool(const std::string&)>& given,
           const std::function<std::string(const std::string&)>& label) {
  const auto refuse = [&](const char* setting, const std::string& why) {
    throw ConfigError("{}: {}", label(setting), why);
  };
  if (!tagger.transformer && !tagger.word_vectors && tagger.words() == 0 && tagger.characters() == 0)
    refuse("word_dimensions",
           "words have neither vectors nor characters; set this or character_dimensions to more than 0");
  for (const char* other : {"word_dimensions", "min_word_count"}) {
    if (tagger.word_vectors && given(other))
      refuse(other, "the vocabulary and its vectors are those of word_vectors; remove one");
  }
  if (tagger.word_vectors && !std::filesystem::is_regular_file(*tagger.word_vectors))
    refuse("word_vectors", fmt::format("{} is not a file (relative paths start at the working directory)",
                                       tagger.word_vectors->string()));
  for (const char* other : {"layers", "layer_mean", "subtoken_pooling", "fine_tune", "context_separator"})
    if (!tagger.transformer && given(other))
      refuse(other, "it has no effect without transformer; remove this, or set transformer");
  if (tagger.transformer && !std::filesystem::is_regular_file(*tagger.transformer / "config.json"))
    refuse(
        "transformer",
        fmt::format(
            "there is no config.json in {}; expected a model folder (relative paths start at the working directory){}",
            tagger.transformer->string(), hub::pull_hint(*tagger.transformer)));
}

}  // namespace

void TaggerSettings::fields(settings::Fields& field) {
  field("transformer", transformer,
        "model folder of a transformer, whose states are part of a word's vector; unset: none");
  field(
      "layers", layers,
      "the transformer's layers that are read: numbers, separated by commas, from 0 (its embeddings) or from the end (-1: the last); or all",
      settings::matches("all|-?[0-9]{1,3}( *, *-?[0-9]{1,3})*", "layers: -1, or -1,-2,-3,-4, or all"));
  field("layer_mean", layer_mean, "several layers: their mean; off: one after another");
  field("subtoken_pooling", subtoken_pooling,
        "the vector of a word of several tokens: that of the first, of the last, both, or the mean of all",
        settings::one_of({"first", "last", "first_last", "mean"}));
  field("fine_tune", fine_tune, "train the transformer too; off: it stays as it is, without dropout");
  field(
      "context_separator", context_separator,
      "the transformer reads a token [FLERT], which is added to its vocabulary, between a sentence and its context, as Flair's use_context_separator");
  field(
      "word_vectors", word_vectors,
      "file of word vectors: GloVe's or word2vec's text, or word2vec's binary form; its words are the vocabulary; unset: random vectors of the words of data.train");
  field("word_dimensions", word_dimensions,
        "elements of a random word vector; 0: none; unset: 100, or 0 with transformer",
        settings::at_least(0).at_most(largest_tagger));
  field("train_words", train_words,
        "train the word vectors too; unset: random ones, but not those of word_vectors");
  field("min_word_count", min_word_count,
        "random vectors: words that occur less often in data.train are unknown",
        settings::at_least(1).at_most(largest_tagger));
  field("lowercase", lowercase,
        "look words up in lower case; unset: if word_vectors has no word with an upper-case letter");
  field("character_dimensions", character_dimensions,
        "elements of a character's vector; 0: no characters; unset: 25, or 0 with transformer",
        settings::at_least(0).at_most(largest_tagger));
  field("character_hidden_size", character_hidden_size,
        "state of each direction of the LSTM over a word's characters",
        settings::at_least(1).at_most(largest_tagger));
  field("reproject_embeddings", reproject_embeddings,
        "a linear map between the vectors and the recurrent layer");
  field("rnn_type", rnn_type, "the layer over the words of a sentence",
        settings::one_of({"LSTM", "GRU", "none"}));
  field("hidden_size", hidden_size, "its state in each direction",
        settings::at_least(1).at_most(largest_tagger));
  field("rnn_layers", rnn_layers, "the number of such layers", settings::at_least(1).at_most(100));
  field("bidirectional", bidirectional, "in both directions, or from the first word to the last only");
  field("use_crf", use_crf,
        "choose the tags of a sentence together, by a conditional random field; off: each by itself");
  field("dropout", dropout, "dropout of single elements, also between recurrent layers",
        settings::at_least(0).below(1));
  field("word_dropout", word_dropout, "dropout of whole words", settings::at_least(0).below(1));
  field("locked_dropout", locked_dropout, "dropout of the same elements in all words of a sentence",
        settings::at_least(0).below(1));
}

bool is_new_tagger(const ModelConfig& model) {
  if (model.type) return model.type == new_tagger;
  if (!model.config || model.config->is_section()) return false;
  try {
    const auto json = nlohmann::json::parse(MappedFile(model.config->file).text());
    return json.is_object() && json.value("model_type", "") == new_tagger && !json.contains("vocab_size");
  } catch (const std::exception&) {
    return false;
  }
}

TaggerSettings read_new_tagger(const Recipe& recipe) {
  if (recipe.model.type) {
    const TaggerSettings& settings = recipe.task_settings.as<TaggerSettings>();
    const std::string section = "sequence_tagger.";
    check(
        settings, [&](const std::string& name) { return recipe.origins.given(section + name); },
        [&](const std::string& name) { return recipe.origins.label(section + name); });
    return settings;
  }
  const std::filesystem::path& path = recipe.model.config.value().file;
  TaggerFile file;
  const settings::YamlNode document = settings::parse_yaml(read_file(path), path.string());
  const settings::Origins origins = settings::read_fields(settings::fields_of(file), document);
  if (file.settings.transformer) file.settings.transformer = hub::resolve_model(*file.settings.transformer);
  check(
      file.settings, [&](const std::string& name) { return origins.given(name); },
      [&](const std::string& name) { return origins.label(name); });
  return file.settings;
}

namespace {

void check_new_tagger(const Recipe& recipe) {
  const auto& origins = recipe.origins;
  const auto refuse = [&](const char* setting, const std::string& why) {
    throw ConfigError("{}: {}", origins.label(setting), why);
  };
  const auto& words = recipe.task_settings.as<TokenClassificationConfig>();
  if (words.label_all_tokens)
    refuse("token_classification.label_all_tokens", "a sequence-tagger reads whole words; remove this");
  const TaggerSettings tagger = read_new_tagger(recipe);
  if (words.context_size > 0 && !tagger.transformer)
    refuse(
        "token_classification.context_size",
        "only a transformer reads neighbouring sentences; remove this, or set sequence_tagger.transformer");
  if (tagger.context_separator && words.context_size == 0)
    refuse(
        "sequence_tagger.context_separator",
        "sentences have no context from which they are separated; set token_classification.context_size, or remove this");
  if (words.embeddings_storage_mode != StateStorage::none && (!tagger.transformer || tagger.fine_tune))
    refuse(
        "token_classification.embeddings_storage_mode",
        "only states of a frozen transformer are kept; remove this, or set sequence_tagger.transformer and fine_tune: false");
  if (tagger.use_crf && !words.loss_weights.empty())
    refuse(
        "token_classification.loss_weights",
        "a conditional random field has a loss per sentence, not per tag; remove this, or set use_crf: false");
}

// The section has no effect without a new tagger.
void require_unused_tagger(const Recipe& recipe) {
  TaggerSettings unset;
  if (recipe.task_settings.as<TaggerSettings>() == unset) return;
  for (const settings::Field& field : settings::fields_of(unset)) {
    const std::string name = "sequence_tagger." + field.key;
    if (recipe.origins.given(name))
      throw ConfigError("{}: it has no effect without model.type: sequence-tagger; set that, or remove this",
                        recipe.origins.label(name));
  }
}

}  // namespace

NewModel new_tagger_kind() {
  return {.type = new_tagger,
          .section = "sequence_tagger",
          .is_chosen = is_new_tagger,
          .resolve =
              [](Recipe& recipe) {
                auto& transformer = recipe.task_settings.as<TaggerSettings>().transformer;
                if (transformer) transformer = hub::resolve_model(*transformer);
              },
          .check =
              [](const Recipe& recipe) {
                if (!recipe.model.type) require_unused_tagger(recipe);
                if (is_new_tagger(recipe.model)) check_new_tagger(recipe);
              }};
}

}  // namespace stretto
