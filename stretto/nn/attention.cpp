#include "stretto/kernels/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/kernels/gpu_attention.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/key_value_cache.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Queries, keys and values [., heads, D] of `rows`: three tensors, or the columns of one tensor [T, 3 * heads
// * D].
struct Operands {
  Operands(Tensor queries, Tensor keys, Tensor values)
      : q(std::move(queries)), k(std::move(keys)), v(std::move(values)) {}
  Operands(at::TensorList rows, int64_t heads) {
    if (rows.size() == 3) {
      q = rows[0], k = rows[1], v = rows[2];
      return;
    }
    const int64_t width = rows[0].size(1) / 3;
    const auto columns = [&](int64_t part) {
      return rows[0].slice(1, part * width, (part + 1) * width).view({rows[0].size(0), heads, width / heads});
    };
    q = columns(0), k = columns(1), v = columns(2);
  }
  Tensor q, k, v;
};

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, at::TensorList rows, int64_t heads,
                        const kernels::AttentionSequences& sequences, const kernels::Dropout& dropout) {
    const Operands operands(rows, heads);
    const auto result = kernels::attention(operands.q, operands.k, operands.v, sequences, dropout);
    variable_list saved = {result.rows,          result.log_sum_exp, sequences.query_bounds,
                           sequences.key_bounds, sequences.samples,  sequences.first_places};
    saved.insert(saved.end(), rows.begin(), rows.end());
    context->save_for_backward(saved);
    context->saved_data["heads"] = heads;
    context->saved_data["p"] = dropout.p;
    context->saved_data["key"] = static_cast<int64_t>(dropout.key);
    context->saved_data["causal"] = sequences.causal;
    context->saved_data["queries_are_last"] = sequences.queries_are_last;
    context->saved_data["window"] = sequences.window;
    context->saved_data["scale"] = sequences.scale;
    context->saved_data["first_head"] = sequences.first_head;
    return result.rows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const kernels::Dropout dropout = {context->saved_data["p"].toDouble(),
                                      static_cast<uint64_t>(context->saved_data["key"].toInt())};
    kernels::AttentionSequences sequences = {saved[2],
                                             saved[3],
                                             saved[4],
                                             saved[5],
                                             context->saved_data["causal"].toBool(),
                                             context->saved_data["queries_are_last"].toBool(),
                                             context->saved_data["window"].toInt(),
                                             context->saved_data["scale"].toDouble()};
    sequences.first_head = context->saved_data["first_head"].toInt();
    const at::TensorList rows = at::TensorList(saved).slice(6);
    variable_list gradients;
    for (const Tensor& each : rows) gradients.push_back(at::empty(each.sizes(), each.options()));
    const int64_t heads = context->saved_data["heads"].toInt();
    const Operands operands(rows, heads), of_gradients(gradients, heads);
    kernels::attention_backward(outputs[0].contiguous(), {saved[0], saved[1]}, operands.q, operands.k,
                                operands.v, sequences, dropout,
                                {of_gradients.q, of_gradients.k, of_gradients.v});
    gradients.resize(rows.size() + 3);
    return gradients;
  }
};

// Attention by operators with autograd: libtorch's kernels on GPUs, where these can compute it.
Tensor attend_by_operators(const Operands& of, const kernels::AttentionSequences& sequences,
                           const kernels::AttentionLengths& lengths, const kernels::Dropout& dropout,
                           const Context& context) {
  if (context.kernels == Kernels::fast && of.q.is_cuda()) {
    if (kernels::has_gpu_attention(of.q, sequences, lengths, dropout))
      return kernels::gpu_attention(of.q, of.k, of.v, sequences, lengths);
    return kernels::attention_by_operators(of.q, of.k, of.v, sequences, lengths, dropout, of.q.scalar_type());
  }
  return kernels::attention_reference(of.q, of.k, of.v, sequences, dropout);
}

Tensor attend(const std::vector<Tensor>& rows, int64_t heads, const kernels::AttentionSequences& sequences,
              const kernels::AttentionLengths& lengths, const kernels::Dropout& dropout,
              const Context& context) {
  if (context.fast(rows[0]))
    return AttentionFunction::apply(at::TensorList(rows), heads, sequences, dropout).flatten(1);
  return attend_by_operators(Operands(rows, heads), sequences, lengths, dropout, context).flatten(1);
}

kernels::AttentionLengths lengths_of(const PackedLayout& queries, const PackedLayout& keys) {
  return {queries.used, keys.used, queries.max_length, keys.max_length};
}

kernels::AttentionSequences sequences_of(const PackedLayout& queries, const PackedLayout& keys,
                                         const AttentionRule& rule) {
  return {queries.cu_seqlens, keys.cu_seqlens, keys.sample_of_sequence,
          keys.first_places,  rule.causal,     queries.are_last,
          rule.window,        rule.scale,      /*key_rows=*/{},
          rule.first_head};
}

// Causal attention of rows whose sequences began in earlier passes.
Tensor attend_to_cache(const Operands& rows, const PackedLayout& layout, uint64_t site,
                       const Context& context, const AttentionRule& rule) {
  if (!rule.causal || context.training)
    throw ConfigError("attention: a cache of keys and values is for causal attention outside of training");
  const CachedKeys cached = context.cache->append(site, rows.k, rows.v);
  kernels::AttentionSequences sequences = sequences_of(layout, layout, rule);
  sequences.key_bounds = cached.bounds;
  sequences.key_rows = cached.rows;
  sequences.queries_are_last = true;
  if (context.fast(rows.q))
    return kernels::attention(rows.q, cached.keys, cached.values, sequences, {}).rows.flatten(1);
  const kernels::AttentionLengths lengths = {layout.used, cached.rows.numel(), layout.max_length,
                                             cached.longest};
  return attend_by_operators({rows.q, cached.keys, cached.values}, sequences, lengths, {}, context)
      .flatten(1);
}

}  // namespace

Tensor packed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const PackedLayout& queries,
                        const PackedLayout& keys, double p, uint64_t site, const Context& context,
                        const AttentionRule& rule) {
  if (context.cache != nullptr) {
    const std::vector<Tensor> rows = {q.contiguous(), k.contiguous(), v.contiguous()};
    return attend_to_cache(Operands(rows, q.size(1)), queries, site, context, rule);
  }
  return attend({q.contiguous(), k.contiguous(), v.contiguous()}, q.size(1),
                sequences_of(queries, keys, rule), lengths_of(queries, keys), context.dropout(p, site),
                context);
}

Tensor joined_attention(const Tensor& qkv, int64_t heads, const PackedLayout& layout, double p, uint64_t site,
                        const Context& context, const AttentionRule& rule) {
  if (context.cache != nullptr) {
    const std::vector<Tensor> rows = {qkv.contiguous()};
    return attend_to_cache(Operands(rows, heads), layout, site, context, rule);
  }
  return attend({qkv.contiguous()}, heads, sequences_of(layout, layout, rule), lengths_of(layout, layout),
                context.dropout(p, site), context);
}

}  // namespace stretto::nn
