#include "stretto/data/curriculum.h"

#include <cmath>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/data/packing.h"

namespace stretto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sequences of one token, the number of the sample and a hundred times the dataset's.
class Tokens : public Dataset {
 public:
  Tokens(int64_t size, int32_t name) : size_(size), name_(name) {}
  int64_t size() const override { return size_; }
  int32_t length_of(int64_t index) const override { return static_cast<int32_t>(index) + 1; }
  Batch pack(std::span<const int64_t> samples) const override {
    std::vector<std::vector<int32_t>> ids;
    for (const int64_t sample : samples) ids.push_back({100 * name_ + static_cast<int32_t>(sample)});
    std::vector<TokenSequence> sequences;
    for (size_t i = 0; i < ids.size(); ++i) sequences.push_back({ids[i], ids[i], samples[i]});
    Batch batch = pack_sequences(sequences);
    batch.sample_ids.assign(samples.begin(), samples.end());
    batch.count = std::ssize(samples);
    return batch;
  }

 private:
  int64_t size_;
  int32_t name_;
};

std::vector<int64_t> tokens_of(const Dataset& dataset, int64_t begin, int64_t end) {
  std::vector<int64_t> samples(static_cast<size_t>(end - begin));
  std::iota(samples.begin(), samples.end(), begin);
  const Tensor ids = dataset.pack(samples).at("input_ids").slice(0, 0, end - begin).contiguous();
  return {ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel()};
}

class CurriculumTest : public ::testing::Test {
 protected:
  const Tokens easy_{4, 1}, medium_{6, 2}, hard_{5, 3};
  const CurriculumOptions options_{.max_steps = 10, .global_batch_size = 2, .seed = 7};
};

TEST_F(CurriculumTest, EachStageHasItsSteps) {
  Curriculum steps(options_), ratios(options_), ranges(options_);
  for (const auto& [samples, count] : {std::pair(&easy_, 3), {&medium_, 5}, {&hard_, 2}}) {
    steps.add_steps(*samples, count);
    ratios.add_ratio(*samples, count / 10.0);
  }
  ranges.add_range(easy_, 0, 3);
  ranges.add_range(medium_, 3, 8);
  ranges.add_rest(hard_);
  EXPECT_EQ(steps.size(), 20);
  for (int64_t step = 0; step < 10; ++step) {
    const auto tokens = tokens_of(steps, 2 * step, 2 * step + 2);
    const int64_t stage = step < 3 ? 1 : step < 8 ? 2 : 3;
    EXPECT_EQ(tokens[0] / 100, stage) << step;
    EXPECT_EQ(tokens[1] / 100, stage) << step;
    for (const Curriculum* other : {&ratios, &ranges})
      EXPECT_EQ(tokens_of(*other, 2 * step, 2 * step + 2), tokens);
  }
  EXPECT_EQ(steps.fingerprint(), ranges.fingerprint());
}

TEST_F(CurriculumTest, AStageTakesEachSampleOnceAPassInAnotherOrder) {
  Curriculum shuffled(options_);
  shuffled.add_rest(easy_);
  auto first = tokens_of(shuffled, 0, 4), second = tokens_of(shuffled, 4, 8),
       third = tokens_of(shuffled, 8, 12);
  EXPECT_TRUE(first != second || second != third);
  for (auto* pass : {&first, &second, &third}) {
    std::ranges::sort(*pass);
    EXPECT_THAT(*pass, ElementsAre(100, 101, 102, 103));
  }
  CurriculumOptions in_order = options_;
  in_order.shuffle = false;
  Curriculum plain(in_order);
  plain.add_rest(hard_);
  EXPECT_THAT(tokens_of(plain, 0, 7), ElementsAre(300, 301, 302, 303, 304, 300, 301));
  EXPECT_EQ(plain.length_of(6), 2);
  EXPECT_NE(plain.fingerprint(), shuffled.fingerprint());
}

// Dropout masks depend on the identity of a sample.
TEST_F(CurriculumTest, ASampleHasAnotherIdentityInEachPassAndStage) {
  Curriculum twice(options_);
  twice.add_steps(easy_, 4);
  twice.add_rest(easy_);
  std::set<int64_t> ids;
  for (int64_t step = 0; step < 10; ++step) {
    const std::vector<int64_t> samples = {2 * step, 2 * step + 1};
    const Batch batch = twice.pack(samples);
    EXPECT_EQ(batch.at("samples")[0].item<int64_t>(), batch.sample_ids[0]);
    ids.insert(batch.sample_ids.begin(), batch.sample_ids.end());
  }
  EXPECT_EQ(ids.size(), 20);
}

TEST_F(CurriculumTest, RefusesWhatDoesNotFit) {
  const auto refuses = [&](const auto& add, const char* reason) {
    Curriculum curriculum(options_);
    curriculum.add_steps(easy_, 4);
    EXPECT_THAT(message_of<ConfigError>([&] { add(curriculum); }), HasSubstr(reason));
  };
  refuses([&](Curriculum& all) { all.add_steps(easy_, 0); }, "stage 2 has 0 steps");
  refuses([&](Curriculum& all) { all.add_steps(easy_, 7); }, "cannot end at step 11");
  refuses([&](Curriculum& all) { all.add_steps(easy_, INT64_MAX); }, "cannot end at step 15");
  refuses([&](Curriculum& all) { all.add_ratio(easy_, 1.5); }, "stage 2 has the ratio 1.5");
  refuses([&](Curriculum& all) { all.add_ratio(easy_, NAN); }, "stage 2 has the ratio nan");
  refuses([&](Curriculum& all) { all.add_range(easy_, 5, 10); }, "the stages before end at step 4");
  refuses([&](Curriculum& all) { all.add_range(easy_, 4, 4); }, "cannot end at step 4");
  refuses([&](Curriculum& all) { all.add_rest(Tokens(0, 4)); }, "the dataset of stage 2 has no samples");
  refuses([](Curriculum& all) { all.size(); }, "the stages have 4 of 10 steps");
  refuses(
      [&](Curriculum& all) {
        all.add_rest(hard_);
        all.pack(std::vector<int64_t>{7, 8});
      },
      "a batch has samples of two stages");
  EXPECT_THROW(Curriculum({.max_steps = 0}), ConfigError);
}

}  // namespace
}  // namespace stretto::data
