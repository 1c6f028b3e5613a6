#include "stretto/lite/loader.h"

#include "stretto/data/split.h"

namespace stretto::lite {

Batch DatasetBatches::read(int64_t epoch, int64_t index) const {
  const auto batch = sampler_.batch(epoch, index);
  const auto mine =
      data::split_batch(batch, dataset_.lengths(), loop_.ranks(), loop_.rank(), 1, dataset_.pads()).at(0);
  shares_->push_back({std::ssize(mine), std::ssize(batch)});
  if (!mine.empty()) return dataset_.pack(mine);
  Batch stand_in = dataset_.pack(std::span(batch).first(1));
  stand_in.count = 0;
  return stand_in;
}

}  // namespace stretto::lite
