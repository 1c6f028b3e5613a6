#pragma once

#include "stretto/kernels/attention.h"

namespace stretto::kernels {

// Whether gpu_attention computes these: on CUDA in fp32, bf16 and fp16 without dropout, whose masks the
// kernels do not know.
bool has_gpu_attention(const Tensor& q, const AttentionSequences& sequences, const AttentionLengths& lengths,
                       const Dropout& dropout);

// Like attention_reference, by libtorch's flash attention (Dao 2023; bf16 and fp16) or memory-efficient
// attention (Rabe & Staats 2021; fp32), with autograd: memory grows with the number of tokens, not with its
// square. REQUIRES: has_gpu_attention().
Tensor gpu_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSequences& sequences,
                     const AttentionLengths& lengths);

}  // namespace stretto::kernels
