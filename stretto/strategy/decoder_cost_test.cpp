#include "stretto/strategy/decoder_cost.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

// Llama 2 with 7 billion parameters.
DecoderSizes llama_7b() {
  constexpr int64_t width = 4096, inner = 11008, words = 32000;
  return {.layers = 32,
          .width = width,
          .inner = inner,
          .query_width = width,
          .key_width = width,
          .key_heads = 32,
          .first = words * width,
          .layer = 4 * width * width + 3 * width * inner + 2 * width,
          .last = words * width + width,
          .layer_products = 4 * width * width + 3 * width * inner,
          .head_products = words * width};
}

DecoderBatch batch(int64_t micro_batches) {
  return {.sequences = 1, .length = 4096, .micro_batches = micro_batches};
}

DecoderRates rates() {
  return {.host = {.cores = 64, .memory = 200e9, .network = 25e9}, .operations = 50e9, .reached = 0.5};
}

DecoderForecast forecast(const DecoderJob& job, const char* strategy = "zero1", int64_t micro_batches = 128) {
  return forecast_decoder(llama_7b(), batch(micro_batches), job, find_sharding(strategy), rates(), 0);
}

// Six operations per token and parameter of the maps (Kaplan et al. 2020), and attention's.
TEST(DecoderCost, CountsTheOperationsOfAStep) {
  const DecoderSizes sizes = llama_7b();
  ASSERT_EQ(sizes.elements(), 6'738'415'616);
  const double maps = static_cast<double>(sizes.elements() - sizes.first) - 65 * 4096.0;
  const double attention = 32.0 * 12 * 4096 * 4096 / 2;  // 12 x L x width, half of it causal
  EXPECT_EQ(step_operations(sizes, batch(1)), 4096 * (6 * maps + attention));
  EXPECT_EQ(step_operations(sizes, batch(3)), 3 * step_operations(sizes, batch(1)));
  DecoderBatch again = batch(1);
  again.recomputes = true;  // a third forward of the layers, not of the head
  EXPECT_EQ(step_operations(sizes, again) - step_operations(sizes, batch(1)),
            4096 * (2 * (maps - static_cast<double>(sizes.head_products)) + attention / 3));
}

// 2 bytes of weights, 4 of gradients, and 12 of fp32 weights and Adam's state, which data ranks share.
TEST(DecoderCost, CountsTheParametersOfARank) {
  const double parameters = 6'738'415'616.0 / 8;
  const auto bytes = [](const DecoderJob& job, const char* strategy) {
    return static_cast<double>(forecast(job, strategy).parameters.parameters.total());
  };
  EXPECT_NEAR(bytes({.ranks = 8, .ranks_per_host = 8, .tp = 8}, "zero1"), 18 * parameters, 1e6);
  EXPECT_NEAR(bytes({.ranks = 32, .ranks_per_host = 8, .tp = 8}, "zero1"), (6 + 12.0 / 4) * parameters, 1e6);
  EXPECT_NEAR(bytes({.ranks = 32, .ranks_per_host = 8, .tp = 8}, "fsdp"), 18.0 / 4 * parameters, 1e6);
  EXPECT_NEAR(bytes({.ranks = 32, .ranks_per_host = 8, .tp = 8}, "ddp"), 18 * parameters, 1e6);
}

TEST(DecoderCost, StagesDivideLayersAndWait) {
  const DecoderForecast one = forecast({.ranks = 8, .ranks_per_host = 8, .tp = 8}, "ddp", 8),
                        four = forecast({.ranks = 32, .ranks_per_host = 8, .tp = 8, .pp = 4}, "ddp", 8);
  EXPECT_NEAR(four.step.compute, one.step.compute / 4 * (1 + 3.0 / 8), 1e-6);
  const int64_t of_stage = 32000LL * 4096 + 4096 + 8 * llama_7b().layer;
  EXPECT_NEAR(static_cast<double>(four.parameters.parameters.master), 4.0 * static_cast<double>(of_stage) / 8,
              1e4);
  // A host sends its states on, and gradients back.
  EXPECT_EQ(four.layers_sent, 2.0 * 8 * 4096 * 4096 * 2);
  EXPECT_EQ(four.step.sent, 0) << "one group of ranks with the model";
}

TEST(DecoderCost, DividedLayersSumTheirStates) {
  const DecoderSizes sizes = llama_7b();
  const DecoderJob host = {.ranks = 8, .ranks_per_host = 8, .tp = 8};
  const double states = 4096.0 * 4096 * 2;
  EXPECT_EQ(summed_bytes(sizes, batch(1), host), (4 * 32 + 2) * states);
  EXPECT_EQ(summed_bytes(sizes, batch(1), {.ranks = 8, .ranks_per_host = 8}), 0);
  EXPECT_EQ(forecast(host).layers_sent, 0);
  // Over two hosts each sends its sums to the other.
  EXPECT_EQ(forecast({.ranks = 8, .ranks_per_host = 4, .tp = 8}, "ddp", 1).layers_sent,
            (4 * 32 + 2) * states);
}

TEST(DecoderCost, ActivationsShrinkWithRanksAndRecomputation) {
  const DecoderSizes sizes = llama_7b();
  const DecoderJob whole = {}, divided = {.ranks = 8, .ranks_per_host = 8, .tp = 8};
  DecoderBatch again = batch(1);
  again.recomputes = true;
  const double kept = static_cast<double>(activation_bytes(sizes, batch(1), whole)),
               parts = static_cast<double>(activation_bytes(sizes, batch(1), divided)),
               inputs = static_cast<double>(activation_bytes(sizes, again, whole));
  const double layer = 2.0 * 4096 * (6 * 4096 + 2 * 11008);  // bytes of a layer
  EXPECT_NEAR(kept, 32 * layer, 0.1 * kept);
  EXPECT_LT(parts, 0.5 * kept) << "norms are whole on each rank";
  DecoderJob rows = divided;
  rows.divides_rows = true;
  EXPECT_EQ(activation_bytes(sizes, batch(1), divided) - activation_bytes(sizes, batch(1), rows),
            int64_t{32} * 2 * (4096 - 512) * 4096 * 2);
  EXPECT_NEAR(kept - inputs, 31 * layer - 32 * 2.0 * 4096 * 4096, 1);
  // Ranks beyond the heads of keys and values have copies of them.
  DecoderSizes grouped = sizes;
  grouped.key_width = 512, grouped.key_heads = 4;
  EXPECT_GT(forecast_decoder(grouped, batch(1), divided, find_sharding("ddp"), rates(), 0)
                .parameters.parameters.compute,
            2 * (grouped.layers * grouped.layer + grouped.first + grouped.last) / 8);
}

}  // namespace
}  // namespace stretto
