#include "stretto/tasks/new_tagger.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/base/temporary_name.h"
#include "stretto/config/tasks/new_tagger.h"
#include "stretto/corpus/word_vectors.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/sequence_tagger.h"
#include "stretto/models/registry.h"
#include "stretto/settings/describe.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/text/add_token.h"
#include "stretto/text/copy_tokenizer.h"
#include "stretto/text/simple_normalizers.h"
#include "stretto/text/tokenizer.h"
#include "stretto/text/utf8.h"

namespace stretto::tasks {
namespace {

constexpr const char* unknown_word = "<unk>";

struct Vocabulary {
  std::vector<std::string> words;  // by id; the first is unknown_word
  std::vector<float> vectors;      // [words, dimensions], or empty
  int64_t dimensions = 0;
  bool lowercase = false;
};

std::string in_lower_case(const std::string& word) {
  std::string buffer;
  text::NormalizedText normal;
  text::LowercaseNormalizer().normalize(text::replace_invalid_utf8(word, buffer), 0, normal);
  return normal.bytes;
}

bool has_capitals(const std::string& word) {
  return std::ranges::any_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
}

Vocabulary vocabulary_of_vectors(const TaggerSettings& settings) {
  corpus::WordVectors file = corpus::read_word_vectors(*settings.word_vectors);
  Vocabulary vocabulary;
  vocabulary.dimensions = file.dimensions;
  vocabulary.lowercase = settings.lowercase.value_or(std::ranges::none_of(file.words, has_capitals));
  vocabulary.words = {unknown_word};
  vocabulary.vectors.assign(static_cast<size_t>(file.dimensions), 0);
  for (size_t i = 0; i < file.words.size(); ++i) {
    const auto begin = file.values.begin() + static_cast<int64_t>(i) * file.dimensions;
    if (file.words[i] == unknown_word) {
      std::copy_n(begin, file.dimensions, vocabulary.vectors.begin());
      continue;
    }
    vocabulary.words.push_back(std::move(file.words[i]));
    vocabulary.vectors.insert(vocabulary.vectors.end(), begin, begin + file.dimensions);
  }
  log::info("words      {}: {} vectors of {} dimensions ({})", file.name, file.words.size(), file.dimensions,
            file.format);
  return vocabulary;
}

// Most frequent words first, equally frequent ones by their bytes.
Vocabulary vocabulary_of_corpus(const TaggerSettings& settings, const corpus::TaggedCorpus& train) {
  Vocabulary vocabulary;
  vocabulary.dimensions = settings.words();
  vocabulary.lowercase = settings.lowercase.value_or(false);
  std::map<std::string, int64_t> counts;
  for (const auto& sentence : train.sentences)
    for (const std::string& word : sentence.tokens)
      ++counts[vocabulary.lowercase ? in_lower_case(word) : word];
  counts.erase(unknown_word);
  counts.erase("");
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [word, count] : counts)
    if (count >= settings.min_word_count && settings.words() > 0) sorted.emplace_back(-count, word);
  std::ranges::sort(sorted);
  vocabulary.words = {unknown_word};
  for (auto& [count, word] : sorted) vocabulary.words.push_back(std::move(word));
  log::info("words      {} of {} words of {} have a vector", sorted.size(), counts.size(), train.name);
  return vocabulary;
}

std::string characters_of(const corpus::TaggedCorpus& train) {
  std::set<char32_t> found;
  std::string buffer, all;
  for (const auto& sentence : train.sentences) {
    for (const std::string& word : sentence.tokens) {
      const std::string_view valid = text::replace_invalid_utf8(word, buffer);
      for (size_t at = 0; at < valid.size();) found.insert(text::next_code_point(valid, at));
    }
  }
  for (const char32_t c : found) text::append_utf8(all, c);
  return all;
}

nlohmann::ordered_json tokenizer_json(const Vocabulary& vocabulary) {
  nlohmann::ordered_json json = {
      {"version", "1.0"},          {"truncation", nullptr},
      {"padding", nullptr},        {"added_tokens", nlohmann::json::array()},
      {"normalizer", nullptr},     {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"post_processor", nullptr}, {"decoder", nullptr}};
  if (vocabulary.lowercase) json["normalizer"] = {{"type", "Lowercase"}};
  nlohmann::ordered_json::object_t ids;
  ids.reserve(vocabulary.words.size());
  for (size_t id = 0; id < vocabulary.words.size(); ++id) ids.push_back({vocabulary.words[id], id});
  json["model"] = {{"type", "WordLevel"}, {"vocab", std::move(ids)}, {"unk_token", unknown_word}};
  return json;
}

SequenceTaggerConfig config_of(const TaggerSettings& settings, const Vocabulary& vocabulary,
                               const corpus::TaggedCorpus& train) {
  SequenceTaggerConfig config;
  if (settings.transformer) {
    config.transformer = read_config_json(*settings.transformer / "config.json");
    config.transformer_path = std::filesystem::absolute(*settings.transformer).string();
    config.layers = settings.layers;
    config.layer_mean = settings.layer_mean;
    config.subtoken_pooling = settings.subtoken_pooling;
    config.fine_tune = settings.fine_tune;
    config.context_separator = settings.context_separator;
  }
  config.vocab_size = std::ssize(vocabulary.words);
  config.word_dimensions = vocabulary.dimensions;
  config.train_words = settings.train_words.value_or(!settings.word_vectors);
  if (settings.characters() > 0) {
    config.characters = characters_of(train);
    config.character_dimensions = settings.characters();
  }
  config.character_hidden_size = settings.character_hidden_size;
  config.reproject_embeddings = settings.reproject_embeddings;
  config.rnn_type = settings.rnn_type;
  config.hidden_size = settings.hidden_size;
  config.rnn_layers = settings.rnn_layers;
  config.bidirectional = settings.bidirectional;
  config.use_crf = settings.use_crf;
  config.dropout = settings.dropout;
  config.word_dropout = settings.word_dropout;
  config.locked_dropout = settings.locked_dropout;
  return config;
}

// Adds the separator to the tokenizer in `folder`, and a row for it to the transformer's token embeddings.
void add_separator(const std::filesystem::path& folder, SequenceTaggerConfig& config) {
  try {
    const int64_t id = text::add_special_token(folder, SequenceTaggerConfig::separator);
    nlohmann::json& size = config.transformer.at("vocab_size");
    size = std::max(size.get<int64_t>(), id + 1);
  } catch (const DataError& error) {
    throw ConfigError("sequence_tagger.context_separator: {}: {}", config.transformer_path, error.what());
  }
}

void write_new_tagger(const std::filesystem::path& folder, const TaggerSettings& settings,
                      const Vocabulary& vocabulary, SequenceTaggerConfig config) {
  make_folders(folder);
  std::filesystem::path words = folder;
  if (settings.transformer) {
    text::copy_tokenizer(*settings.transformer, text::Tokenizer::load(*settings.transformer).lowercase(),
                         folder);
    if (settings.context_separator) add_separator(folder, config);
    words /= text::words_folder;
    if (config.word_dimensions > 0) make_folders(words);
  }
  // A transformer's tagger without word vectors has no ids of words.
  if (!settings.transformer || config.word_dimensions > 0)
    write_file_atomic(words / "tokenizer.json", tokenizer_json(vocabulary).dump() + "\n");
  if (!vocabulary.vectors.empty()) {
    std::vector<float> values = vocabulary.vectors;
    save_safetensors(
        folder / "model.safetensors",
        {{"words.weight",
          at::from_blob(values.data(), {config.vocab_size, config.word_dimensions}, at::kFloat).clone()}});
  }
  nlohmann::json json = config.to_json({});
  for (const char* of_tags : {"id2label", "label2id"}) json.erase(of_tags);
  if (settings.transformer) json["transformer_path"] = config.transformer_path;
  write_file_atomic(folder / "config.json", json.dump(2) + "\n");
}

// Throws ConfigError, by the transformer's config.json, for a family or layers that cannot be read.
void check_transformer(const TaggerSettings& settings) {
  const std::filesystem::path file = *settings.transformer / "config.json";
  make_text_model(bundled_models(), heads::hidden_states, read_config_json(file), file.string(),
                  {.layers = settings.layers});
}

std::string content_key(TaggerSettings settings, const corpus::TaggedCorpus& train) {
  std::string parts = settings::to_yaml(settings::fields_of(settings)) + corpus::content_hash(train);
  if (settings.word_vectors) parts += hash128_hex(MappedFile(*settings.word_vectors).text());
  if (settings.transformer) {
    parts += MappedFile(*settings.transformer / "config.json").text();
    parts += text::Tokenizer::load(*settings.transformer).fingerprint();
  }
  return hash128_hex(parts);
}

}  // namespace

std::filesystem::path make_new_tagger(const Recipe& recipe, const corpus::TaggedCorpus& train) {
  const std::filesystem::path cache = recipe.data.cache.value_or(recipe.output / "cache");
  const TaggerSettings settings = read_new_tagger(recipe);
  const std::filesystem::path folder = cache / ("tagger-" + content_key(settings, train));
  if (std::filesystem::exists(folder / "config.json")) return folder;
  if (settings.transformer) check_transformer(settings);
  const Vocabulary vocabulary =
      settings.word_vectors ? vocabulary_of_vectors(settings) : vocabulary_of_corpus(settings, train);
  const SequenceTaggerConfig config = config_of(settings, vocabulary, train);
  const std::filesystem::path partial = temporary_name(folder);
  try {
    write_new_tagger(partial, settings, vocabulary, config);
  } catch (...) {
    remove_folder(partial);
    throw;
  }
  try {
    rename_folder(partial, folder);
  } catch (const IoError&) {
    if (!std::filesystem::exists(folder / "config.json")) throw;  // otherwise another host was faster
    remove_folder(partial);
  }
  return folder;
}

}  // namespace stretto::tasks
