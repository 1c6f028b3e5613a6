#pragma once

#include "stretto/kernels/cpu/attention_loops.h"

namespace stretto::kernels {

// Attention of sequences that have at most one query each, as in the steps of generation: reads keys and
// values where they are, in the order of their memory. REQUIRES: key_rows, no dropout.
void one_query_loop(const AttentionCall<float>& call);
void one_query_loop(const AttentionCall<Bf16>& call);
void one_query_loop(const AttentionCall<double>& call);

}  // namespace stretto::kernels
