#include "stretto/base/error.h"
#include "stretto/text/bpe.h"
#include "stretto/text/tokenizer_sections.h"
#include "stretto/text/unigram.h"
#include "stretto/text/word_level.h"
#include "stretto/text/wordpiece.h"

namespace stretto::text {
namespace {

std::unique_ptr<Model> read_wordpiece(const JsonField& model, const std::string& name) {
  WordPieceOptions options;
  options.unk_token = model.string_or("unk_token", "[UNK]");
  options.continuing_subword_prefix = model.string_or("continuing_subword_prefix", "##");
  if (model.has("max_input_chars_per_word")) {
    options.max_input_chars_per_word = static_cast<size_t>(model["max_input_chars_per_word"].as_id());
  }
  return std::make_unique<WordPiece>(Vocabulary(model["vocab"].as_vocabulary(), name), options, name);
}

// A rule is a list of two tokens or, in files of early versions, one string with a space between them.
std::pair<std::string, std::string> read_rule(const JsonField& rule) {
  if (!rule.is_string()) return {rule[size_t{0}].as_string(), rule[size_t{1}].as_string()};
  const std::string& text = rule.as_string();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
    throw DataError("{}: expected two tokens with a space between them, found \"{}\"", rule.place(), text);
  return {text.substr(0, space), text.substr(space + 1)};
}

void refuse_setting(const JsonField& model, const char* key, bool set) {
  if (set) throw DataError("{}.{}: this setting is not available for BPE; expected none", model.place(), key);
}

std::unique_ptr<Model> read_bpe(const JsonField& model, bool byte_level, const std::string& name) {
  refuse_setting(model, "dropout", model.has("dropout"));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    refuse_setting(model, key, !model.string_or(key, "").empty());
  BpeOptions options{.byte_level = byte_level, .byte_fallback = model.bool_or("byte_fallback", false)};
  if (byte_level) refuse_setting(model, "byte_fallback", options.byte_fallback);
  if (model.has("unk_token")) options.unk_token = model["unk_token"].as_string();
  options.fuse_unk = model.bool_or("fuse_unk", false);
  options.ignore_merges = model.bool_or("ignore_merges", false);
  const JsonField rules = model["merges"];
  Merges merges;
  merges.reserve(rules.as_list().size());
  for (size_t i = 0; i < rules.as_list().size(); ++i) merges.push_back(read_rule(rules[i]));
  return std::make_unique<Bpe>(Vocabulary(model["vocab"].as_vocabulary(), name), merges, options, name);
}

std::unique_ptr<Model> read_unigram(const JsonField& model, const std::string& name) {
  const JsonField vocab = model["vocab"];
  std::vector<VocabularyEntry> entries;
  std::vector<double> scores;
  const auto& rows = vocab.as_list();
  entries.reserve(rows.size());
  scores.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    // Places are formatted for errors only.
    const auto& row = rows[i];
    const bool good = row.is_array() && row.size() == 2 && row[0].is_string() && row[1].is_number();
    const auto bad_row = [&] { return vocab[i]; };
    entries.push_back({good ? row[0].get_ref<const std::string&>() : bad_row()[size_t{0}].as_string(),
                       static_cast<int32_t>(i)});
    scores.push_back(good ? row[1].get<double>() : bad_row()[1].as_number());
  }
  UnigramOptions options;
  if (model.has("unk_id")) options.unk_id = model["unk_id"].as_id();
  options.byte_fallback = model.bool_or("byte_fallback", false);
  return std::make_unique<Unigram>(Vocabulary(std::move(entries), name), std::move(scores), options, name);
}

}  // namespace

// Files of early versions have no type, which then follows from the fields.
std::string model_type(const JsonField& model) {
  if (model.has("type")) return model["type"].as_string();
  if (model.has("merges")) return "BPE";
  if (model.has("max_input_chars_per_word")) return "WordPiece";
  return model.has("unk_id") ? "Unigram" : "WordLevel";
}

std::unique_ptr<Model> read_model(const JsonField& file, const std::string& name) {
  const JsonField model = file["model"];
  const std::string type = model_type(model);
  if (type == "WordPiece") return read_wordpiece(model, name);
  if (type == "BPE") return read_bpe(model, splits_bytes(file), name);
  if (type == "Unigram") return read_unigram(model, name);
  if (type == "WordLevel") {
    return std::make_unique<WordLevel>(Vocabulary(model["vocab"].as_vocabulary(), name),
                                       model.string_or("unk_token", "<unk>"), name);
  }
  throw DataError(
      "{}.type: a {} tokenizer is not available; available are WordPiece, BPE, Unigram and WordLevel",
      model.place(), type);
}

}  // namespace stretto::text
