#include "stretto/nn/packed.h"

#include "stretto/base/error.h"

namespace stretto::nn {

PackedLayout::PackedLayout(const Batch& source)
    : cu_seqlens(source.at("cu_seqlens")), positions(source.at("positions")), samples(source.at("samples")) {
  batch = cu_seqlens.numel() - 1;
  tokens = positions.numel();
  const Tensor bounds = cu_seqlens.to(at::kCPU);
  const int64_t* bound = bounds.const_data_ptr<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    if (bound[b + 1] <= bound[b]) throw DataError("packed batch: sequence {} is empty", b);
    max_length = std::max(max_length, bound[b + 1] - bound[b]);
  }
  if (batch < 1 || bound[0] != 0 || bound[batch] != tokens || samples.numel() != tokens) {
    throw DataError("packed batch: cu_seqlens runs from {} to {}, but there are {} tokens and {} sample ids",
                    bound[0], bound[std::max<int64_t>(batch, 0)], tokens, samples.numel());
  }
  const Tensor lengths = cu_seqlens.slice(0, 1) - cu_seqlens.slice(0, 0, batch);
  const Tensor sequence = at::repeat_interleave(at::arange(batch, cu_seqlens.options()), lengths);
  slots = sequence * max_length + positions;
}

}  // namespace stretto::nn
