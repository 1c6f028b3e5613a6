#include "stretto/kernels/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/nn/functional.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const kernels::AttentionSequences& sequences, const kernels::Dropout& dropout) {
    const auto result = kernels::attention(q, k, v, sequences, dropout);
    context->save_for_backward({q, k, v, result.rows, result.log_sum_exp, sequences.query_bounds,
                                sequences.key_bounds, sequences.samples, sequences.first_places});
    context->saved_data["p"] = dropout.p;
    context->saved_data["key"] = static_cast<int64_t>(dropout.key);
    context->saved_data["causal"] = sequences.causal;
    context->saved_data["queries_are_last"] = sequences.queries_are_last;
    return result.rows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const kernels::Dropout dropout = {context->saved_data["p"].toDouble(),
                                      static_cast<uint64_t>(context->saved_data["key"].toInt())};
    const kernels::AttentionSequences sequences = {saved[5],
                                                   saved[6],
                                                   saved[7],
                                                   saved[8],
                                                   context->saved_data["causal"].toBool(),
                                                   context->saved_data["queries_are_last"].toBool()};
    const auto gradients = kernels::attention_backward(outputs[0].contiguous(), {saved[3], saved[4]},
                                                       saved[0], saved[1], saved[2], sequences, dropout);
    return {gradients.q, gradients.k, gradients.v, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor packed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const PackedLayout& queries,
                        const PackedLayout& keys, double p, uint64_t site, const Context& context,
                        bool causal) {
  const kernels::AttentionSequences sequences = {queries.cu_seqlens, keys.cu_seqlens, keys.sample_of_sequence,
                                                 keys.first_places,  causal,          queries.are_last};
  const kernels::Dropout dropout = context.dropout(p, site);
  const Tensor rows = context.fast(q) ? AttentionFunction::apply(q.contiguous(), k.contiguous(),
                                                                 v.contiguous(), sequences, dropout)
                                      : kernels::attention_reference(q, k, v, sequences, dropout);
  return rows.reshape({q.size(0), q.size(1) * q.size(2)});
}

}  // namespace stretto::nn
