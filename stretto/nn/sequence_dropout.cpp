#include "stretto/nn/sequence_dropout.h"

#include "stretto/kernels/dropout.h"

namespace stretto::nn {

Tensor locked_dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout,
                      const Context& context) {
  const kernels::Dropout how = context.dropout(p, site);
  if (how.p == 0) return x;
  const PackedLayout first = layout.first_tokens();
  const Tensor masks =
      kernels::dropout_mask({first.samples, first.places, 1}, x.size(1), how.p, how.key, x.scalar_type());
  // The sequence of each row; padding rows belong to the last one.
  const Tensor sequence =
      at::bucketize(at::arange(layout.tokens, layout.cu_seqlens.options()), layout.cu_seqlens, false, true)
          .sub(1)
          .clamp_max(layout.batch - 1);
  return x * masks.index_select(0, sequence);
}

Tensor word_dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout,
                    const Context& context) {
  const kernels::Dropout how = context.dropout(p, site);
  if (how.p == 0) return x;
  const Tensor mask =
      kernels::dropout_mask({layout.samples, layout.places, 1}, 1, how.p, how.key, x.scalar_type());
  return x * mask.gt(0).to(x.scalar_type());
}

}  // namespace stretto::nn
