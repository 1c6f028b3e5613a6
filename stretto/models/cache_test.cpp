#include "stretto/models/decoder_support.h"
#include "stretto/nn/key_value_cache.h"

namespace stretto {
namespace {

// Packs the tokens from `begins[b]` to `ends[b]` of sequence b of a packed batch; sequences for which these
// are equal are omitted.
Batch part_of(const Batch& whole, const std::vector<int64_t>& begins, const std::vector<int64_t>& ends) {
  const Tensor bounds = whole.at("cu_seqlens");
  std::vector<Tensor> ids, positions, samples;
  std::vector<int64_t> cut = {0};
  for (int64_t b = 0; b < std::ssize(begins); ++b) {
    const auto i = static_cast<size_t>(b);
    const int64_t count = ends[i] - begins[i], first = bounds[b].item<int64_t>() + begins[i];
    if (count == 0) continue;
    ids.push_back(whole.at("input_ids").slice(0, first, first + count));
    positions.push_back(at::arange(begins[i], ends[i]));
    samples.push_back(at::full({count}, b, at::kLong));
    cut.push_back(cut.back() + count);
  }
  Batch part;
  part.tensors = {{"input_ids", at::cat(ids)},
                  {"position_ids", at::cat(positions)},
                  {"samples", at::cat(samples)},
                  {"cu_seqlens", at::tensor(cut)}};
  return part;
}

// Reads a packed batch in passes with a cache.
class Reader {
 public:
  Reader(const Decoder& model, const Batch& whole, nn::Kernels kernels)
      : model_(model), whole_(whole), context_{.kernels = kernels, .cache = &cache_} {
    const Tensor bounds = whole.at("cu_seqlens");
    for (int64_t b = 0; b + 1 < bounds.numel(); ++b)
      lengths_.push_back((bounds[b + 1] - bounds[b]).item<int64_t>());
    read_.assign(lengths_.size(), 0);
    rows_.resize(lengths_.size());
    found_.resize(lengths_.size());
  }

  // Reads each sequence up to position ends[b], or to its end if it is shorter.
  void read(std::vector<int64_t> ends) {
    std::vector<nn::KeyValueCache::Sequence> sequences;
    for (size_t b = 0; b < ends.size(); ++b) {
      ends[b] = std::max(read_[b], std::min(ends[b], lengths_[b]));
      for (const int64_t row : cache_.take(ends[b] - read_[b])) rows_[b].push_back(row);
    }
    for (size_t b = 0; b < ends.size(); ++b)
      if (ends[b] > read_[b]) sequences.push_back({rows_[b], static_cast<size_t>(read_[b])});
    if (sequences.empty()) return;
    cache_.begin_pass(sequences);
    const Tensor hidden = model_.forward(part_of(whole_, read_, ends), context_);
    int64_t row = 0;
    for (size_t b = 0; b < ends.size(); ++b) {
      if (ends[b] > read_[b]) found_[b].push_back(hidden.slice(0, row, row + ends[b] - read_[b]));
      row += ends[b] - read_[b];
    }
    read_ = std::move(ends);
  }

  // Returns the logits of the whole batch.
  Tensor logits() const {
    std::vector<Tensor> all;
    for (const auto& parts : found_) all.push_back(at::cat(parts));
    return model_.logits(at::cat(all));
  }

  const std::vector<int64_t>& lengths() const { return lengths_; }

 private:
  const Decoder& model_;
  const Batch& whole_;
  nn::KeyValueCache cache_;
  nn::Context context_;
  std::vector<int64_t> lengths_, read_;
  std::vector<nn::KeyValueCache::Rows> rows_;
  std::vector<std::vector<Tensor>> found_;
};

class DecoderCache : public ::testing::TestWithParam<std::tuple<const char*, nn::Kernels>> {
 protected:
  DecoderCache() {
    folder_ = std::get<0>(GetParam());
    kernels_ = std::get<1>(GetParam());
    model_ = load_decoder(folder_);
    whole_ = packed_batch(golden_of(folder_));
    whole_.tensors.erase("labels");
    expected_ = model_->logits(model_->forward(whole_, {.kernels = kernels_}));
  }

  void expect_equal(const Reader& reader, const std::string& what) const {
    EXPECT_LT(relative_difference(reader.logits(), expected_), 1e-5) << folder_ << ": " << what;
  }

  at::NoGradGuard no_grad_;
  std::string folder_;
  nn::Kernels kernels_;
  std::shared_ptr<Decoder> model_;
  Batch whole_;
  Tensor expected_;
};

// Reading a text in two parts, split at any position, gives the same results as reading it at once.
TEST_P(DecoderCache, TwoPassesEqualOneAtEverySplit) {
  for (int64_t cut = 1; cut < 24; ++cut) {
    Reader reader(*model_, whole_, kernels_);
    reader.read(std::vector<int64_t>(reader.lengths().size(), cut));
    reader.read(reader.lengths());
    expect_equal(reader, "cut at " + std::to_string(cut));
  }
}

// Prompts of different lengths are read first, then one token of each at a time, as in generation.
TEST_P(DecoderCache, TokenByTokenEqualsTheWholeForward) {
  Reader reader(*model_, whole_, kernels_);
  reader.read({2, 5, 1, 9});
  for (int64_t i = 1; i < 24; ++i) reader.read({2 + i, 5 + i, 1 + i, 9 + i});
  expect_equal(reader, "one by one");
}

// A sequence begins while others continue, and passes read them together.
TEST_P(DecoderCache, SequencesMayBeginWhileOthersContinue) {
  Reader reader(*model_, whole_, kernels_);
  reader.read({5, 0, 0, 3});
  reader.read({5, 7, 0, 4});
  reader.read({5, 11, 1, 24});
  expect_equal(reader, "entering and leaving");
}

const char* const cached_cases[] = {"gpt2/plain",    "gpt2/inverse",  "gpt2/untied", "llama/plain",
                                    "llama/grouped", "llama/tied",    "llama/yarn",  "llama/llama3",
                                    "llama/partial", "llama/mistral", "llama/qwen2", "llama/qwen3"};

INSTANTIATE_TEST_SUITE_P(Cases, DecoderCache,
                         ::testing::Combine(::testing::ValuesIn(cached_cases),
                                            ::testing::Values(nn::Kernels::fast, nn::Kernels::reference)),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param);
                           std::ranges::replace(name, '/', '_');
                           return name +
                                  (std::get<1>(test.param) == nn::Kernels::fast ? "_fast" : "_reference");
                         });

TEST(KeyValueCache, FreeRowsAreReused) {
  nn::KeyValueCache cache;
  const auto first = cache.take(3);
  cache.share(std::span(first).first(2));
  cache.release(first);
  EXPECT_EQ(cache.used(), 2) << "another sequence begins with these";
  const auto second = cache.take(1);
  EXPECT_EQ(second[0], first[2]);
  cache.release(std::span(first).first(2));
  cache.release(second);
  EXPECT_EQ(cache.used(), 0);
}

TEST(KeyValueCache, IsRefusedIfResultsWouldBeWrong) {
  const auto model = load_decoder("gpt2/plain");
  const Batch batch = packed_batch(golden_of("gpt2/plain"));
  nn::KeyValueCache cache;
  EXPECT_THROW(model->forward(batch, {.cache = &cache}), ShapeError) << "no pass has begun";
  EXPECT_THROW(model->forward(batch, {.training = true, .cache = &cache}), ConfigError);
}

}  // namespace
}  // namespace stretto
