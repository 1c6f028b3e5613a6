#include "stretto/data/epoch_cursor.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::data {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

class Lengths : public Dataset {
 public:
  explicit Lengths(size_t count, bool pads = false, std::string contents = "texts")
      : lengths_(count), pads_(pads), contents_(std::move(contents)) {
    std::mt19937_64 random(count);
    for (int32_t& length : lengths_) length = 1 + static_cast<int32_t>(random() % 20);
  }
  int64_t size() const override { return std::ssize(lengths_); }
  int32_t length_of(int64_t sample) const override { return lengths_[static_cast<size_t>(sample)]; }
  std::string fingerprint() const override { return contents_; }
  bool pads() const override { return pads_; }
  Batch pack(std::span<const int64_t>) const override { return {}; }
  int64_t tokens(const std::vector<int64_t>& samples) const {
    int64_t tokens = 0;
    for (const int64_t sample : samples) tokens += lengths_[static_cast<size_t>(sample)];
    return tokens;
  }

 private:
  std::vector<int32_t> lengths_;
  bool pads_;
  std::string contents_;
};

State state_of(const EpochCursor& cursor) {
  State state;
  cursor.add_state(state);
  return state;
}

using Batches = std::vector<std::vector<int64_t>>;

Batches rest_of_epoch(EpochCursor& cursor) {
  Batches batches;
  const int64_t epoch = cursor.epoch();
  while (cursor.epoch() == epoch) {
    batches.push_back(cursor.batch().samples);
    cursor.advance();
  }
  return batches;
}

std::vector<int64_t> joined(const Batches& batches) {
  std::vector<int64_t> samples;
  for (const auto& batch : batches) samples.insert(samples.end(), batch.begin(), batch.end());
  return samples;
}

std::vector<BatchOptions> all_options() {
  return {{.seed = 3, .global_batch_size = 4},
          {.seed = 3, .global_batch_size = 7},
          {.seed = 3, .global_batch_size = 100},
          {.seed = 3, .max_tokens = 20},
          {.seed = 3, .max_tokens = 27},
          {.seed = 3, .max_tokens = 27, .grad_accumulation_steps = 2},
          {.seed = 3, .max_tokens = 20, .world_size = 3},
          {.seed = 3, .shuffle = false, .global_batch_size = 5}};
}

// Resuming from any position with any other options gives each sample of the epoch once, in the original
// order.
TEST(EpochCursor, ResumesAtTheSameSample) {
  for (const bool pads : {false, true}) {
    const Lengths dataset(61, pads);
    for (const BatchOptions& before : all_options()) {
      for (const BatchOptions& after : all_options()) {
        EpochCursor cursor(dataset, before);
        rest_of_epoch(cursor);
        std::vector<int64_t> taken;
        while (cursor.epoch() == 1) {
          const State state = state_of(cursor);
          EpochCursor whole(dataset, before);
          whole.resume(state);
          const auto expected = joined(rest_of_epoch(whole));
          EpochCursor resumed(dataset, after);
          resumed.resume(state);
          ASSERT_EQ(resumed.epoch(), 1);
          ASSERT_EQ(resumed.epochs_done(), cursor.epochs_done());
          const int64_t steps = resumed.steps_left(2);
          const Batches rest = rest_of_epoch(resumed);
          ASSERT_EQ(std::ssize(rest), steps);
          if (taken.empty()) {  // an epoch that has not begun has this run's order
            ASSERT_THAT(joined(rest), UnorderedElementsAreArray(expected));
          } else {
            ASSERT_EQ(joined(rest), expected);
          }
          for (size_t i = 0; i < rest.size(); ++i) {
            if (after.max_tokens > 0) {
              ASSERT_LE(dataset.tokens(rest[i]),
                        after.max_tokens * after.grad_accumulation_steps * after.world_size);
            } else {
              ASSERT_LE(std::ssize(rest[i]), after.global_batch_size);
              if (i + 1 < rest.size()) {
                ASSERT_EQ(std::ssize(rest[i]), after.global_batch_size);
              }
            }
          }
          ASSERT_EQ(resumed.epoch(), 2);
          EpochCursor next(dataset, after);
          rest_of_epoch(next), rest_of_epoch(next);
          ASSERT_EQ(rest_of_epoch(resumed), rest_of_epoch(next))
              << "later epochs do not depend on the options before";
          const auto batch = cursor.batch().samples;
          taken.insert(taken.end(), batch.begin(), batch.end());
          cursor.advance();
        }
      }
    }
  }
}

// A run that resumed with other options is resumed again, and continues as if it had never stopped.
TEST(EpochCursor, ResumesARestAtEveryBatch) {
  const Lengths dataset(61);
  for (const BatchOptions& before : all_options()) {
    for (const BatchOptions& after : all_options()) {
      EpochCursor begun(dataset, before);
      begun.advance();
      if (begun.epoch() > 0) continue;
      EpochCursor cursor(dataset, after);
      cursor.resume(state_of(begun));
      EpochCursor whole(dataset, after);
      whole.resume(state_of(begun));
      const Batches expected = rest_of_epoch(whole);
      for (size_t done = 0; done < expected.size(); ++done) {
        EpochCursor resumed(dataset, after);
        resumed.resume(state_of(cursor));
        ASSERT_EQ(resumed.steps_left(3), cursor.steps_left(3));
        ASSERT_EQ(rest_of_epoch(resumed),
                  Batches(expected.begin() + static_cast<int64_t>(done), expected.end()));
        cursor.advance();
      }
      ASSERT_EQ(cursor.epoch(), 1);
    }
  }
}

TEST(EpochCursor, CountsStepsAndEpochs) {
  const Lengths dataset(10);
  EpochCursor cursor(dataset, {.global_batch_size = 4});
  EXPECT_EQ(cursor.steps_per_epoch(), 3);
  EXPECT_EQ(cursor.steps_left(2), 6);
  EXPECT_TRUE(cursor.epoch_begins());
  cursor.advance();
  EXPECT_FALSE(cursor.epoch_begins());
  EXPECT_DOUBLE_EQ(cursor.epochs_done(), 0.4);
  EXPECT_EQ(cursor.steps_left(2), 5);
  cursor.advance(), cursor.advance();
  EXPECT_TRUE(cursor.epoch_begins());
  EXPECT_EQ(cursor.epoch(), 1);
  EXPECT_EQ(cursor.steps_left(1), 0);
}

// ceil(epochs x steps per epoch), as transformers counts.
TEST(EpochCursor, CountsPartsOfEpochs) {
  const Lengths dataset(10);
  EpochCursor cursor(dataset, {.global_batch_size = 1});
  EXPECT_EQ(cursor.steps_left(2.5), 25);
  EXPECT_EQ(cursor.steps_left(0.3), 3);  // 0.3 x 10 is above 3 in floating point
  EXPECT_EQ(cursor.steps_left(0.31), 4);
  for (int step = 0; step < 12; ++step) cursor.advance();
  EXPECT_EQ(cursor.steps_left(1.5), 3);
  EXPECT_EQ(cursor.steps_left(1.1), 0);
  EXPECT_EQ(cursor.steps_left(0.5), 0);
  EpochCursor resumed(dataset, {.global_batch_size = 4});  // the rest of the epoch is 8 samples: 4, 4
  resumed.resume(state_of(cursor));
  EXPECT_EQ(resumed.steps_left(1.5), 1);
  EXPECT_EQ(resumed.steps_left(2), 2);
  EXPECT_EQ(resumed.steps_left(2.5), 4);
}

// Positions in the format of earlier versions.
TEST(EpochCursor, ReadsOlderPositions) {
  const Lengths dataset(61, /*pads=*/true);
  const BatchOptions options = {.seed = 3, .global_batch_size = 4};
  EpochCursor cursor(dataset, options);
  cursor.advance(), cursor.advance();
  State old = state_of(cursor);
  old.scalars["data"].erase("fingerprint");
  for (const char* name : {"seed", "shuffle", "group_by_length"}) old.scalars["place"]["order"].erase(name);
  EpochCursor resumed(dataset, options);
  resumed.resume(old);
  EXPECT_EQ(rest_of_epoch(resumed), rest_of_epoch(cursor));
}

TEST(EpochCursor, RefusesOtherData) {
  const BatchOptions options = {.global_batch_size = 4};
  const auto message = [&](const Dataset& here) {
    return message_of<ConfigError>([&] {
      EpochCursor cursor(here, options, "data.train");
      const Lengths there(20);
      cursor.resume(state_of(EpochCursor(there, options)));
    });
  };
  EXPECT_EQ(message(Lengths(20)), "no error");
  EXPECT_THAT(message(Lengths(21)), has_all("data.train holds 21 samples here", "20 in the run"));
  EXPECT_THAT(message(Lengths(20, false, "other texts")),
              has_all("number of samples (20) is equal", "texts, tokens or labels differ"));
}

TEST(EpochCursor, RefusesImpossiblePositions) {
  const Lengths dataset(20);
  const auto message = [&](const auto& change) -> std::string {
    EpochCursor cursor(dataset, {.global_batch_size = 4});
    cursor.advance();
    State state = state_of(cursor);
    change(state.scalars["place"]);
    EpochCursor resumed(dataset, {.global_batch_size = 5});
    try {
      resumed.resume(state);
    } catch (const Error& error) {
      EXPECT_EQ(resumed.batch().samples, EpochCursor(dataset, {.global_batch_size = 5}).batch().samples);
      return error.what();
    }
    return "no error";
  };
  using Json = nlohmann::json;
  EXPECT_EQ(message([](Json&) {}), "no error");
  EXPECT_THAT(message([](Json& place) { place["samples"] = INT64_MAX; }),
              has_all("place.samples is 9223372036854775807", "from 0 to 19"));
  EXPECT_THAT(message([](Json& place) { place["samples"] = UINT64_MAX; }), HasSubstr("place.samples is"));
  EXPECT_THAT(message([](Json& place) { place["samples"] = 20; }), HasSubstr("place.samples is 20"));
  EXPECT_THAT(message([](Json& place) { place["samples"] = -1; }), HasSubstr("place.samples is -1"));
  EXPECT_THAT(message([](Json& place) { place["epoch"] = "two"; }), HasSubstr("place.epoch is \"two\""));
  EXPECT_THAT(message([](Json& place) { place.erase("epoch"); }), HasSubstr("place.epoch is missing"));
  EXPECT_THAT(message([](Json& place) { place.erase("order"); }), HasSubstr("place.order is not readable"));
  EXPECT_THAT(message([](Json& place) { place["order"] = 3; }), HasSubstr("place.order is not readable"));
  EXPECT_THAT(message([](Json& place) { place["order"]["global_batch_size"] = -4; }),
              HasSubstr("a global batch of -4 samples"));
  EXPECT_THAT(message([](Json& place) { place["order"]["max_tokens"] = 1; }), HasSubstr("max_tokens = 1"));
}

}  // namespace
}  // namespace stretto::data
