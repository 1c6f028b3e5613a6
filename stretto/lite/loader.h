#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>

#include <torch/serialize/archive.h>

#include "stretto/lite/batch.h"
#include "stretto/lite/loop.h"

namespace torch::data::samplers {
template <class BatchRequest>
class Sampler;
}

namespace stretto {

namespace data {
class Dataset;
class GlobalBatches;
struct BatchOptions;
}  // namespace data

// How the batches of a loader are distributed over the ranks.
enum class Distribute {
  split,  // the loader yields the same global batches on every rank; each rank takes its share of every batch
  // The loader yields different batches on each rank of Lite::data_parallel() (a DistributedSampler, one file
  // per rank).
  per_rank,
};

namespace lite {

// The shares of batches that were divided before reading, in the order of the batches.
using ShareQueue = std::deque<BatchShare>;

// A torch sampler that yields this rank's share of each batch of indices that `Base` yields, so that each
// rank reads only its own samples.
template <class Base>
class SplitSampler : public torch::data::samplers::Sampler<typename Base::BatchRequestType> {
 public:
  using BatchRequest = typename Base::BatchRequestType;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): torch's samplers cannot be moved, others can
  SplitSampler(Base base, int data_rank, int data_ranks, bool drop_last, std::shared_ptr<ShareQueue> shares)
      : base_(std::move(base)),
        data_rank_(data_rank),
        data_ranks_(data_ranks),
        drop_last_(drop_last),
        shares_(std::move(shares)) {}

  void reset(std::optional<size_t> new_size = std::nullopt) override {
    shares_->clear();
    base_.reset(new_size);
  }
  std::optional<BatchRequest> next(size_t batch_size) override {
    auto batch = base_.next(batch_size);
    if (!batch || (drop_last_ && batch->size() < batch_size)) return std::nullopt;
    const auto count = static_cast<int64_t>(batch->size());
    const Range own = share_range(count, data_rank_, data_ranks_);
    shares_->push_back({own.end - own.begin, count});
    const Range read = own.begin < own.end ? own : Range{0, 1};
    keep_samples(*batch, read.begin, read.end);
    return batch;
  }
  void save(torch::serialize::OutputArchive& archive) const override { base_.save(archive); }
  void load(torch::serialize::InputArchive& archive) override { base_.load(archive); }

 private:
  Base base_;
  int data_rank_, data_ranks_;
  bool drop_last_;
  std::shared_ptr<ShareQueue> shares_;
};

}  // namespace lite

// A loader returned by Lite::setup: a range over this rank's batches, on its device. A loop over it is an
// epoch; all ranks begin and end it together.
template <class Source>
class LiteLoader {
 public:
  using Inner = decltype(std::begin(std::declval<Source&>()));
  using Sentinel = decltype(std::end(std::declval<Source&>()));
  using BatchType = std::remove_cvref_t<decltype(*std::declval<Inner&>())>;

  // `shares`: set if the source already yields only this rank's shares.
  LiteLoader(std::shared_ptr<Source> source, lite::LoaderRecord& record, lite::Loop& loop,
             Distribute distribute, std::shared_ptr<lite::ShareQueue> shares = nullptr)
      : source_(std::move(source)),
        record_(&record),
        loop_(&loop),
        distribute_(distribute),
        shares_(std::move(shares)) {
    record.divided = distribute == Distribute::split;
  }

  // The sentinel of an epoch.
  struct End {};

  // Yields this rank's shares once per epoch. Leaving the loop early, by break or an exception, ends the
  // epoch on this rank.
  class Iterator {
   public:
    using value_type = BatchType;
    explicit Iterator(LiteLoader& loader) : loader_(&loader) {
      loader.loop_->begin_epoch(*loader.record_, [&] {
        inner_.emplace(std::begin(*loader.source_));
        end_.emplace(std::end(*loader.source_));
      });
      take();
    }
    Iterator(const Iterator&) = delete;
    Iterator& operator=(const Iterator&) = delete;
    ~Iterator() {
      if (batch_) loader_->loop_->leave();
    }

    BatchType& operator*() { return *batch_; }
    BatchType* operator->() { return &*batch_; }
    Iterator& operator++() {
      ++*inner_;
      take();
      return *this;
    }
    friend bool operator==(const Iterator& iterator, End) { return !iterator.batch_; }

   private:
    void take() {
      batch_.reset();
      if (!(*inner_ != *end_)) {
        loader_->loop_->end_epoch(*loader_->record_);
        return;
      }
      BatchType batch = **inner_;
      const lite::BatchShare share = loader_->take_share(batch);
      lite::for_each_tensor(batch, [&](Tensor& tensor) { tensor = tensor.to(loader_->loop_->device()); });
      loader_->loop_->begin_batch(*loader_->record_, share);
      batch_ = std::move(batch);
    }

    LiteLoader* loader_;
    std::optional<Inner> inner_;
    std::optional<Sentinel> end_;
    std::optional<BatchType> batch_;
  };

  Iterator begin() { return Iterator(*this); }
  End end() const { return {}; }

 private:
  // Cuts `batch` down to this rank's part.
  lite::BatchShare take_share(BatchType& batch) {
    if (shares_) {
      const lite::BatchShare share = shares_->front();
      shares_->pop_front();
      return share;
    }
    const auto count = lite::count_samples(batch);
    if (!count || *count == 0) {
      throw DataError("loader {}: batch {} holds no samples: no part of it has a first dimension above 0",
                      record_->number, record_->batches + 1);
    }
    if (record_->batches == 0 && loop_->readers(*record_) > 1) {
      uint64_t checksum = 0;
      lite::for_each_tensor(batch, [&](Tensor& tensor) { checksum = lite::mix_checksum(checksum, tensor); });
      loop_->compare_first(*record_, checksum);
    }
    if (distribute_ == Distribute::per_rank) return {*count, loop_->sum_counts(*record_, *count)};
    const lite::Range own = lite::share_range(*count, loop_->data_rank(), loop_->data_ranks());
    const lite::Range kept = own.begin < own.end ? own : lite::Range{0, 1};
    if (loop_->data_ranks() > 1) lite::keep_samples(batch, kept.begin, kept.end);
    return {own.end - own.begin, *count};
  }

  std::shared_ptr<Source> source_;
  lite::LoaderRecord* record_;
  lite::Loop* loop_;
  Distribute distribute_;
  std::shared_ptr<lite::ShareQueue> shares_;
};

namespace lite {

// The batches of a stretto dataset, one epoch per loop. Each rank packs only its own samples.
class DatasetBatches {
 public:
  // `record` counts the epochs. The dataset must outlive it.
  DatasetBatches(const data::Dataset& dataset, const data::BatchOptions& options, const LoaderRecord& record,
                 std::shared_ptr<ShareQueue> shares);

  // Yields this rank's part of each batch of an epoch.
  class Iterator {
   public:
    Iterator(const DatasetBatches& batches, int64_t epoch, int64_t index)
        : batches_(&batches), epoch_(epoch), index_(index) {}
    Batch operator*() const { return batches_->read(epoch_, index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const DatasetBatches* batches_;
    int64_t epoch_, index_;
  };
  Iterator begin() const { return {*this, record_.epochs - 1, 0}; }
  Iterator end() const { return {*this, record_.epochs - 1, size()}; }

 private:
  int64_t size() const;  // of the current epoch
  Batch read(int64_t epoch, int64_t index) const;

  std::shared_ptr<const data::GlobalBatches> batches_;
  const LoaderRecord& record_;
  std::shared_ptr<ShareQueue> shares_;
};

}  // namespace lite
}  // namespace stretto
