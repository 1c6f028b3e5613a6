#include <cstdlib>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/metrics/spans.h"

namespace stretto::metrics {
namespace {

// A tag, split at the first dash as by conlleval. Perl treats a type "0" as none.
struct ChunkTag {
  explicit ChunkTag(std::string_view text) : tag(text.substr(0, text.find('-'))) {
    if (tag.size() < text.size()) type = text.substr(tag.size() + 1);
    if (type == "0") type = "";
  }

  bool is(std::string_view wanted) const { return tag == wanted; }
  bool operator==(const ChunkTag&) const = default;

  std::string_view tag, type = "";
};

bool is_bracket(const ChunkTag& tag) { return tag.is("[") || tag.is("]"); }

bool ends(const ChunkTag& previous, const ChunkTag& current) {
  if ((previous.is("B") || previous.is("I")) && (current.is("B") || current.is("O"))) return true;
  if (previous.is("E") && (current.is("E") || current.is("I") || current.is("O"))) return true;
  if (!previous.is("O") && !previous.is(".") && previous.type != current.type) return true;
  return is_bracket(previous);
}

bool starts(const ChunkTag& previous, const ChunkTag& current) {
  if ((previous.is("B") || previous.is("I") || previous.is("O")) && current.is("B")) return true;
  if ((previous.is("O") || previous.is("E")) && (current.is("I") || current.is("E"))) return true;
  if (!current.is("O") && !current.is(".") && previous.type != current.type) return true;
  return is_bracket(current);
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

// `value` rounded as by printf's %.2f.
double printed(double value) { return std::strtod(fmt::format("{:.2f}", value).c_str(), nullptr); }

struct Percentages {
  explicit Percentages(const SpanCounts& counts)
      : precision(percent(static_cast<double>(counts.correct), static_cast<double>(counts.predicted))),
        recall(percent(static_cast<double>(counts.correct), static_cast<double>(counts.gold))) {
    if (precision + recall > 0) fb1 = 2 * precision * recall / (precision + recall);
  }

  double precision, recall, fb1 = 0;
};

// Reads both taggings of all words in order; the end of a sentence counts as a word outside.
class ChunkCounter {
 public:
  void add(const ChunkTag& gold, const ChunkTag& guessed) {
    const bool gold_ends = ends(gold_, gold), guessed_ends = ends(guessed_, guessed);
    if (open_ && gold_ends && guessed_ends && guessed_.type == gold_.type) {
      ++types_[std::string(gold_.type)].correct;
      open_ = false;
    } else if (open_ && (gold_ends != guessed_ends || guessed.type != gold.type)) {
      open_ = false;
    }
    const bool gold_starts = starts(gold_, gold), guessed_starts = starts(guessed_, guessed);
    if (gold_starts && guessed_starts && guessed.type == gold.type) open_ = true;
    if (gold_starts) ++types_[std::string(gold.type)].gold;
    if (guessed_starts) ++types_[std::string(guessed.type)].predicted;
    gold_ = gold;
    guessed_ = guessed;
  }

  const std::map<std::string, SpanCounts>& types() const { return types_; }

 private:
  ChunkTag gold_{"O"}, guessed_{"O"};
  bool open_ = false;  // inside a chunk that is correct so far
  std::map<std::string, SpanCounts> types_;
};

}  // namespace

nlohmann::ordered_json conlleval(TagSequences gold, TagSequences predicted) {
  const SpanScores words(gold, predicted);  // for its checks
  ChunkCounter counter;
  int64_t tokens = 0, correct_tags = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    for (size_t k = 0; k < gold[i].size(); ++k) {
      const ChunkTag wanted(gold[i][k]), guessed(predicted[i][k]);
      counter.add(wanted, guessed);
      correct_tags += wanted == guessed;
      ++tokens;
    }
    counter.add(ChunkTag("O"), ChunkTag("O"));
  }
  SpanCounts total;
  nlohmann::ordered_json types = nlohmann::ordered_json::object();
  for (const auto& [type, counts] : counter.types()) {
    total.gold += counts.gold;
    total.predicted += counts.predicted;
    total.correct += counts.correct;
    const Percentages scores(counts);
    types[type] = {{"precision", printed(scores.precision)},
                   {"recall", printed(scores.recall)},
                   {"FB1", printed(scores.fb1)},
                   {"found", counts.predicted}};
  }
  const Percentages scores(total);
  return {{"tokens", tokens},
          {"phrases", total.gold},
          {"found", total.predicted},
          {"correct", total.correct},
          {"accuracy", printed(percent(static_cast<double>(correct_tags), static_cast<double>(tokens)))},
          {"precision", printed(scores.precision)},
          {"recall", printed(scores.recall)},
          {"FB1", printed(scores.fb1)},
          {"types", types}};
}

}  // namespace stretto::metrics
