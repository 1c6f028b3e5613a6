#include "stretto/data/question_dataset.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/data/features/questions.h"
#include "stretto/data/packing.h"
#include "stretto/text/utf8.h"

namespace stretto::data {
namespace {

constexpr int64_t rows_of_questions = 5;

// The tokens of the first answer in a window whose context is tokens [first, last); {0, 0} if it is not
// inside. As in run_qa, they are the last token that begins at or before the answer, and the first one that
// ends at or after its end.
std::pair<int32_t, int32_t> answer_tokens(const corpus::Question& question,
                                          const std::vector<int32_t>& begins,
                                          const std::vector<int32_t>& ends, size_t first, size_t last) {
  if (question.answers.empty() || first == last) return {0, 0};
  const corpus::Answer& answer = question.answers.front();
  const int64_t begin = answer.start,
                end = begin + static_cast<int64_t>(text::count_code_points(answer.text));
  if (begins[first] > begin || ends[last - 1] < end) return {0, 0};
  size_t start = first, stop = last - 1;
  while (start < last && begins[start] <= begin) ++start;
  while (stop > first && ends[stop] >= end) --stop;
  if (ends[stop] < end) ++stop;
  return {static_cast<int32_t>(start - 1), static_cast<int32_t>(stop)};
}

void encode_question(const corpus::QuestionSet& set, int64_t index, const text::Tokenizer& tokenizer,
                     const QuestionDatasetOptions& options, FeatureRows& samples) {
  const corpus::Question& question = set.questions[static_cast<size_t>(index)];
  std::vector<text::Encoding> windows;
  try {
    windows = question_windows(tokenizer, question.text, set.contexts[question.context],
                               {options.max_length, options.doc_stride});
  } catch (const Error& error) {
    throw DataError(
        "{}: the question has {} tokens, which leaves too little of {}: {} for the context with doc_stride {} ({})",
        set.where(question), tokenizer.encode(question.text, {.special_tokens = false}).size(),
        options.names("max_length"), options.max_length, options.doc_stride, error.what());
  }
  for (const text::Encoding& window : windows) {
    std::vector<int32_t> begins(window.size(), -1), ends(window.size(), -1);
    const auto [first, last] = context_tokens(window);
    for (size_t t = first; t < last; ++t) {
      begins[t] = static_cast<int32_t>(window.offsets[t].begin);
      ends[t] = static_cast<int32_t>(window.offsets[t].end);
    }
    const auto [start, end] = answer_tokens(question, begins, ends, first, last);
    const int32_t place[] = {static_cast<int32_t>(index), start, end, static_cast<int32_t>(first),
                             static_cast<int32_t>(last)};
    samples.add({window.ids, window.type_ids, begins, ends, place});
  }
}

FeatureFile cached_features(const corpus::QuestionSet& set, const text::Tokenizer& tokenizer,
                            const QuestionDatasetOptions& options) {
  std::vector<uint64_t> parts = {hash64(tokenizer.fingerprint()), static_cast<uint64_t>(options.max_length),
                                 static_cast<uint64_t>(options.doc_stride)};
  std::vector<uint64_t> contexts;
  for (const std::string& context : set.contexts) contexts.push_back(hash64(context));
  for (const corpus::Question& question : set.questions) {
    parts.push_back(hash64(question.text));
    parts.push_back(contexts[question.context]);
    if (question.answers.empty()) continue;
    parts.push_back(hash64(question.answers.front().text));
    parts.push_back(static_cast<uint64_t>(question.answers.front().start));
  }
  const std::string key =
      hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
  return FeatureFile::cached(
      options.cache / (key + ".questions"), rows_of_questions, std::ssize(set.questions),
      {set.name, "questions"},
      [&](int64_t index, FeatureRows& samples) { encode_question(set, index, tokenizer, options, samples); });
}

}  // namespace

std::vector<MisplacedAnswer> find_misplaced_answers(const corpus::QuestionSet& set) {
  std::vector<MisplacedAnswer> misplaced;
  std::optional<CodePointIndex> context;
  size_t indexed = set.contexts.size();
  for (size_t i = 0; i < set.questions.size(); ++i) {
    const corpus::Question& question = set.questions[i];
    if (question.answers.empty()) continue;
    if (indexed != question.context) context.emplace(set.contexts[indexed = question.context]);
    const corpus::Answer& answer = question.answers.front();
    const int64_t begin = std::min(answer.start, context->size());
    const int64_t end =
        std::min(begin + static_cast<int64_t>(text::count_code_points(answer.text)), context->size());
    const std::string_view found = context->slice(begin, end);
    if (found != answer.text || answer.text.empty()) misplaced.push_back({i, std::string(found)});
  }
  return misplaced;
}

QuestionDataset::QuestionDataset(const corpus::QuestionSet& set, const text::Tokenizer& tokenizer,
                                 const QuestionDatasetOptions& options)
    : features_(cached_features(set, tokenizer, options)), pad_to_multiple_of_(options.pad_to_multiple_of) {
  const auto fits = [&](int64_t sample) {
    const auto ids = features_.row(sample, 0), types = features_.row(sample, 1),
               place = features_.row(sample, place_row);
    const auto length = std::ssize(ids);
    if (std::ssize(types) != length || features_.row(sample, 2).size() != ids.size() ||
        features_.row(sample, 3).size() != ids.size() || place.size() != 5)
      return false;
    if (place[0] < 0 || place[0] >= std::ssize(set.questions)) return false;
    for (const int32_t token : place.subspan(1, 2))
      if (token < 0 || token >= length) return false;
    if (place[3] < 0 || place[3] > place[4] || place[4] > length) return false;
    const int32_t vocabulary = tokenizer.vocab_size();
    return std::ranges::all_of(ids, [=](int32_t id) { return id >= 0 && id < vocabulary; }) &&
           std::ranges::all_of(types, [](int32_t type) { return type >= 0 && type < 256; });
  };
  for (int64_t sample = 0; sample < size(); ++sample) {
    if (fits(sample)) continue;
    throw DataError(
        "{}: the cached tokens of {} are not those of its questions; delete the folder, the next run writes it again",
        options.cache.string(), set.name);
  }
  std::vector<uint64_t> parts = {features_.checksum(), hash64(tokenizer.fingerprint())};
  if (options.is_scored) {
    for (const corpus::Question& question : set.questions)
      for (const corpus::Answer& answer : question.answers) parts.push_back(hash64(answer.text));
  }
  fingerprint_ = hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

Batch QuestionDataset::pack(std::span<const int64_t> samples) const {
  std::vector<TokenSequence> sequences;
  for (const int64_t sample : samples)
    sequences.push_back({features_.row(sample, 0), features_.row(sample, 1), sample});
  Batch batch = pack_sequences(sequences, pad_to_multiple_of_);
  if (samples.empty()) return batch;
  const Tensor starts = at::empty({batch.count}, at::kLong), ends = at::empty({batch.count}, at::kLong);
  for (int64_t i = 0; i < batch.count; ++i) {
    const auto place = features_.row(samples[static_cast<size_t>(i)], place_row);
    starts.data_ptr<int64_t>()[i] = place[1];
    ends.data_ptr<int64_t>()[i] = place[2];
  }
  batch.tensors["starts"] = starts;
  batch.tensors["ends"] = ends;
  return batch;
}

}  // namespace stretto::data
