#include <algorithm>
#include <array>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/serve/entity_finder.h"

namespace stretto::serve {
namespace {

size_t best_of(const std::vector<double>& scores) {
  return static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Pieces of WordPiece as text, as the decoder of Hugging Face's tokenizers joins and cleans them.
std::string join_pieces(const std::vector<std::string>& pieces) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> clean = {{{" .", "."},
                                                                                           {" ?", "?"},
                                                                                           {" !", "!"},
                                                                                           {" ,", ","},
                                                                                           {" ' ", "'"},
                                                                                           {" n't", "n't"},
                                                                                           {" 'm", "'m"},
                                                                                           {" 's", "'s"},
                                                                                           {" 've", "'ve"},
                                                                                           {" 're", "'re"}}};
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string piece = pieces[i];
    if (i > 0) piece = piece.starts_with("##") ? piece.substr(2) : " " + piece;
    for (const auto& [from, to] : clean) replace_all(piece, from, to);
    text += piece;
  }
  return text;
}

Entity entity_of(const TaggedToken& token, const std::vector<std::string>& labels) {
  const size_t best = token.best.value_or(best_of(token.scores));
  return {labels.at(best), token.scores[best], token.index, token.word, token.begin, token.end};
}

// A word of several tokens, by strategy first, average or max.
Entity word_of(std::span<const TaggedToken> tokens, const std::vector<std::string>& labels,
               const std::string& strategy) {
  std::vector<double> scores = tokens.front().scores;
  if (strategy == "max") {
    const auto certain = [](const TaggedToken& token) { return *std::ranges::max_element(token.scores); };
    scores = std::ranges::max_element(tokens, {}, certain)->scores;
  } else if (strategy == "average") {
    for (size_t tag = 0; tag < scores.size(); ++tag) {
      double sum = 0;
      for (const TaggedToken& token : tokens) sum += token.scores[tag];
      scores[tag] = sum / static_cast<double>(tokens.size());
    }
  }
  std::vector<std::string> pieces;
  for (const TaggedToken& token : tokens) pieces.push_back(token.word);
  const size_t best = tokens.size() == 1 ? tokens.front().best.value_or(best_of(scores)) : best_of(scores);
  return {labels.at(best), scores[best], 0, join_pieces(pieces), tokens.front().begin, tokens.back().end};
}

// "B-PER" -> B, PER; S and U (a single word) begin an entity, E and L (its last word) are inside, as a tag
// without prefix.
std::pair<char, std::string_view> split_tag(std::string_view tag) {
  if (tag.size() < 3 || tag[1] != '-') return {'I', tag};
  const char prefix = tag[0];
  if (prefix == 'B' || prefix == 'S' || prefix == 'U') return {'B', tag.substr(2)};
  if (prefix == 'I' || prefix == 'E' || prefix == 'L') return {'I', tag.substr(2)};
  return {'I', tag};
}

Entity merged(std::span<const Entity> group) {
  Entity entity = group.front();
  const size_t dash = entity.type.find('-');
  if (dash != std::string::npos) entity.type = entity.type.substr(dash + 1);
  std::vector<std::string> words;
  double sum = 0;
  for (const Entity& part : group) {
    words.push_back(part.word);
    sum += part.score;
  }
  entity.score = sum / static_cast<double>(group.size());
  entity.word = join_pieces(words);
  entity.index = 0;
  entity.end = group.back().end;
  return entity;
}

}  // namespace

std::vector<Entity> find_entities(std::span<const TaggedToken> tokens, const std::vector<std::string>& labels,
                                  const std::string& strategy) {
  static constexpr std::array<std::string_view, 5> known = {"none", "simple", "first", "average", "max"};
  if (std::ranges::find(known, strategy) == known.end())
    throw ConfigError("aggregation_strategy: \"{}\" is not one of {}", strategy, fmt::join(known, ", "));
  std::vector<Entity> parts;
  if (strategy == "none" || strategy == "simple") {
    for (const TaggedToken& token : tokens) parts.push_back(entity_of(token, labels));
  } else {
    for (size_t begin = 0; begin < tokens.size();) {
      size_t end = begin + 1;
      while (end < tokens.size() && tokens[end].continues_word) ++end;
      parts.push_back(word_of(tokens.subspan(begin, end - begin), labels, strategy));
      begin = end;
    }
  }
  std::vector<Entity> entities;
  if (strategy == "none") {
    entities = std::move(parts);
  } else {
    for (size_t begin = 0; begin < parts.size();) {
      size_t end = begin + 1;
      while (end < parts.size() && split_tag(parts[end].type).first != 'B' &&
             split_tag(parts[end].type).second == split_tag(parts[end - 1].type).second)
        ++end;
      entities.push_back(merged(std::span(parts).subspan(begin, end - begin)));
      begin = end;
    }
  }
  std::erase_if(entities, [](const Entity& entity) { return entity.type == "O"; });
  return entities;
}

}  // namespace stretto::serve
