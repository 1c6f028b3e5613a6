#include "stretto/lite/loader.h"

#include "stretto/data/global_batches.h"

namespace stretto::lite {

DatasetBatches::DatasetBatches(const data::Dataset& dataset, const data::BatchOptions& options,
                               const LoaderRecord& record, std::shared_ptr<ShareQueue> shares)
    : batches_(std::make_shared<data::GlobalBatches>(dataset, options)),
      record_(record),
      shares_(std::move(shares)) {}

int64_t DatasetBatches::size() const { return batches_->batches(record_.epochs - 1); }

Batch DatasetBatches::read(int64_t epoch, int64_t index) const {
  const data::GlobalBatch batch = batches_->batch(epoch, index);
  const auto& own = batch.micro_batches.at(0);
  shares_->push_back({std::ssize(own), std::ssize(batch.samples)});
  if (!own.empty()) return batches_->dataset().pack(own);
  Batch dummy = batches_->dataset().pack(std::span(batch.samples).first(1));
  dummy.count = 0;
  return dummy;
}

}  // namespace stretto::lite
