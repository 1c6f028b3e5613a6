#pragma once

#include <cstdint>
#include <vector>

#include "stretto/strategy/memory.h"
#include "stretto/strategy/step_time.h"

namespace stretto {

// What a step of a decoder takes, computed from its sizes: for models and jobs that cannot be measured here.
// docs/scaling.md explains the formulae.

// The sizes of a decoder with a gated MLP, such as a Llama.
struct DecoderSizes {
  int64_t layers = 0, width = 0, inner = 0;  // `inner`: columns of the MLP
  int64_t query_width = 0, key_width = 0;    // heads x width of a head; of keys, and equally of values
  int64_t key_heads = 1;
  int64_t first = 0, layer = 0, last = 0;  // elements of the embeddings, of a layer, and after the layers
  int64_t layer_products = 0,
          head_products = 0;  // multiply-adds per token, of a layer's maps and of the head
  int64_t elements() const { return first + layers * layer + last; }
};

// The samples of a step of one group of ranks that hold the model once.
struct DecoderBatch {
  int64_t sequences = 1, length = 1;  // of a micro-batch
  int64_t micro_batches = 1;
  bool recomputes = false;  // the activations of layers are computed again in backward
  int64_t tokens() const { return sequences * length; }
};

// How the ranks of a job hold the model, and what they reach.
struct DecoderJob {
  int ranks = 1, ranks_per_host = 1;
  int tp = 1, pp = 1;         // ranks that divide each layer; stages of consecutive layers
  bool divides_rows = false;  // between layers, among the ranks of each: training.mesh.sequence_parallel
  Precision precision = Precision::bf16;
};
struct DecoderRates {
  HardwareRates host;
  double operations = 0;  // per second and core, in the products of the precision
  double reached = 1;     // the share of it that a step's forward and backward reach
};

// Floating-point operations of forward and backward of a step, of all ranks that hold the model once. A
// multiply-add is two; attention is causal.
double step_operations(const DecoderSizes& sizes, const DecoderBatch& batch);

// Bytes of activations on the rank that holds most, at the beginning of backward.
int64_t activation_bytes(const DecoderSizes& sizes, const DecoderBatch& batch, const DecoderJob& job);

// Bytes of the hidden states that each rank of a divided layer sums with the others in a step.
double summed_bytes(const DecoderSizes& sizes, const DecoderBatch& batch, const DecoderJob& job);

struct DecoderForecast {
  MemoryForecast parameters;
  int64_t activations = 0, libraries = 0;        // bytes per rank
  StepForecast step;                             // compute includes the idle time of pipeline stages
  double layers_memory = 0, layers_network = 0;  // seconds of the sums of divided layers, and between stages
  double layers_sent = 0;                        // bytes that each host sends for these
  int64_t bytes() const { return parameters.total() + activations + libraries; }  // per rank
  double seconds() const { return step.total() + layers_memory + layers_network; }
};

// The memory of the rank that holds most, and the step. `libraries`: of a rank that has only loaded libtorch.
// The optimizer is Adam's kind, with two states. REQUIRES: tp x pp divides the ranks.
DecoderForecast forecast_decoder(const DecoderSizes& sizes, const DecoderBatch& batch, const DecoderJob& job,
                                 const Sharding& row, const DecoderRates& rates, int64_t libraries);

}  // namespace stretto
