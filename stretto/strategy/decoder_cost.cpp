#include "stretto/strategy/decoder_cost.h"

#include <algorithm>

namespace stretto {
namespace {

constexpr int64_t logits_at_once = int64_t{128} << 20;  // bytes, as in nn/cross_entropy.cpp

// Bytes of an element of the activations.
int64_t activation_width(Precision precision) {
  const ElementBytes bytes = bytes_of(precision);
  return bytes.compute > 0 ? bytes.compute : bytes.master;
}

// Into how many parts keys and values are divided: ranks beyond their heads have copies.
int64_t key_parts(const DecoderSizes& sizes, const DecoderJob& job) {
  return std::min<int64_t>(job.tp, sizes.key_heads);
}

int64_t layer_of_rank(const DecoderSizes& sizes, const DecoderJob& job) {
  const int64_t keys = 2 * sizes.width * sizes.key_width;
  return largest_part(sizes.layer - keys, job.tp) + largest_part(keys, key_parts(sizes, job));
}

int64_t layers_of_stage(const DecoderSizes& sizes, const DecoderJob& job) {
  return largest_part(sizes.layers, job.pp);
}

// The elements of the blocks of a rank's largest stage, the first or the last.
std::vector<int64_t> blocks_of_rank(const DecoderSizes& sizes, const DecoderJob& job) {
  std::vector<int64_t> blocks(static_cast<size_t>(layers_of_stage(sizes, job)), layer_of_rank(sizes, job));
  if (job.pp == 1 || sizes.first >= sizes.last) blocks.push_back(largest_part(sizes.first, job.tp));
  if (job.pp == 1 || sizes.first < sizes.last) blocks.push_back(largest_part(sizes.last, job.tp));
  return blocks;
}

}  // namespace

double step_operations(const DecoderSizes& sizes, const DecoderBatch& batch) {
  // A token attends to half of the sequence on average: scores and values, a multiply-add each.
  const double attention = static_cast<double>(batch.length) * static_cast<double>(sizes.query_width),
               layers = static_cast<double>(sizes.layers) *
                        (2 * static_cast<double>(sizes.layer_products) + 2 * attention),
               head = 2 * static_cast<double>(sizes.head_products);
  // Backward is two forwards: gradients of inputs and of weights.
  const double per_token = 3 * (layers + head) + (batch.recomputes ? layers : 0);
  return per_token * static_cast<double>(batch.tokens() * batch.micro_batches);
}

int64_t activation_bytes(const DecoderSizes& sizes, const DecoderBatch& batch, const DecoderJob& job) {
  const int64_t width = activation_width(job.precision), tokens = batch.tokens();
  // Inputs of the two norms; queries, keys, values and the result of attention; the two maps of the MLP.
  const int64_t rows = largest_part(sizes.width, job.divides_rows ? job.tp : 1),
                layer = 2 * rows + largest_part(2 * sizes.query_width + 2 * sizes.inner, job.tp) +
                        largest_part(2 * sizes.key_width, key_parts(sizes, job));
  const int64_t layers = layers_of_stage(sizes, job);
  // A layer that is computed again keeps its input; its other activations exist for one layer at a time.
  const int64_t kept = batch.recomputes ? layers * rows : layers * layer,
                during = batch.recomputes ? layer : 0;
  // A first stage computes as many micro-batches before the backward of the first of them as there are
  // stages.
  const int64_t at_once = std::min<int64_t>(job.pp, batch.micro_batches);
  // The gradient of the hidden states, and of the widest map inside of a layer.
  const int64_t gradients = 2 * sizes.width + largest_part(2 * sizes.inner, job.tp);
  // The head's logits, some of the tokens at a time, and the gradient of its weight.
  const int64_t head = largest_part(sizes.head_products, job.tp),
                logits =
                    std::min(logits_at_once, width * tokens * (head / std::max<int64_t>(1, sizes.width)));
  return width * tokens * (kept * at_once + during + gradients) + logits +
         head * bytes_of(job.precision).master;
}

double summed_bytes(const DecoderSizes& sizes, const DecoderBatch& batch, const DecoderJob& job) {
  if (job.tp == 1) return 0;
  // Per layer the results of attention and MLP in forward, and the gradients of their inputs in backward;
  // the embeddings' rows, and the gradient of the head's input.
  const int64_t sums = layers_of_stage(sizes, job) * (batch.recomputes ? 6 : 4) + 2;
  return static_cast<double>(sums * batch.micro_batches * batch.tokens() * sizes.width *
                             activation_width(job.precision));
}

DecoderForecast forecast_decoder(const DecoderSizes& sizes, const DecoderBatch& batch, const DecoderJob& job,
                                 const Sharding& row, const DecoderRates& rates, int64_t libraries) {
  ModelSizes parts = {.units = blocks_of_rank(sizes, job)};
  parts.optimizer_bytes = 2 * parts.elements() * bytes_of(job.precision).master;
  // The ranks that hold the model once have different parts of it, whether of layers or of stages.
  const JobShape shape = {.ranks = job.ranks,
                          .ranks_per_host = job.ranks_per_host,
                          .tp = job.tp * job.pp,
                          .micro_batches = batch.micro_batches};
  const int here = std::min(job.ranks, job.ranks_per_host);
  // Stages wait for the first micro-batch, and after the last one.
  const double idle = 1 + static_cast<double>(job.pp - 1) / static_cast<double>(batch.micro_batches);
  const double cores_of_rank = std::max(1.0, static_cast<double>(rates.host.cores) / here);
  const double compute = idle * step_operations(sizes, batch) /
                         (job.tp * job.pp * cores_of_rank * rates.operations * rates.reached);
  DecoderForecast forecast = {.parameters = forecast_memory(parts, row, job.precision, shape),
                              .activations = activation_bytes(sizes, batch, job),
                              .libraries = libraries,
                              .step = forecast_step(parts, row, job.precision, shape, compute, rates.host)};
  const double summed = summed_bytes(sizes, batch, job);
  const int together = std::min(job.tp, here);  // ranks of a host that sum
  // Each of them reads the parts of all and writes the sum for all: in total one copy per rank.
  forecast.layers_memory = together == 1 ? 0 : summed * here / rates.host.memory;
  const double groups = static_cast<double>(here) / together;
  if (const int hosts = (job.tp + together - 1) / together; hosts > 1)
    forecast.layers_sent += groups * summed * 2 * (hosts - 1) / hosts;
  if (job.pp > 1 &&
      job.tp * job.pp > here) {  // the hidden states to the next stage, and their gradients back
    forecast.layers_sent += groups * 2 *
                            static_cast<double>(batch.micro_batches * batch.tokens() * sizes.width *
                                                activation_width(job.precision));
  }
  forecast.layers_network = forecast.layers_sent / rates.host.network;
  return forecast;
}

}  // namespace stretto
