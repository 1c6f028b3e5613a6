#include "stretto/lite/loop.h"

#include <array>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/comm/mesh.h"
#include "stretto/lite/agreement.h"
#include "stretto/parallel/random_state.h"
#include "stretto/parallel/replicas.h"
#include "stretto/tensor/autocast.h"

namespace stretto::lite {

Loop::Loop(const Mesh& mesh, Agreement& agreement, at::Device device)
    : mesh_(mesh), agreement_(agreement), device_(device) {}

Loop::~Loop() = default;

int Loop::data_rank() const { return mesh_.position(Axes::data); }

int Loop::data_ranks() const { return mesh_.size(Axes::data); }

LoaderRecord& Loop::record(const void* source) {
  for (LoaderRecord& record : records_) {
    if (source != nullptr && record.source == source) return record;
  }
  const size_t number = records_.size();
  return records_.emplace_back(
      LoaderRecord{.number = static_cast<int64_t>(number),
                   .source = source,
                   .epochs = number < resumed_epochs_.size() ? resumed_epochs_[number] : 0});
}

void Loop::resume(const std::vector<int64_t>& epochs) {
  resumed_epochs_ = epochs;
  for (size_t number = 0; number < std::min(epochs.size(), records_.size()); ++number)
    records_[number].epochs = epochs[number];
}

void Loop::begin_epoch(LoaderRecord& loader, const std::function<void()>& start) {
  agreement_.agree({.act = Act::begin_loader, .subject = loader.number});
  ++loader.epochs;
  loader.batches = 0;
  Group& world = mesh_.world();
  if (world.size() == 1) return start();
  const std::string own = parallel::random_state();
  const std::string common = world.broadcast_bytes(world.rank() == 0 ? own : "", 0);
  parallel::set_random_state(common);
  start();
  if (world.rank() != 0) parallel::set_random_state(own);
}

int Loop::readers(const LoaderRecord& loader) const {
  return loader.divided ? mesh_.world().size() : mesh_.size(Axis::tp);
}

void Loop::compare_first(const LoaderRecord& loader, uint64_t checksum) {
  Group& readers = loader.divided ? mesh_.world() : mesh_.group(Axis::tp);
  const auto all = readers.all_gather_bytes(std::to_string(checksum));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    if (!loader.divided) {
      throw DataError(
          "loader {}: the first batch at position {} of tp differs from that at position 0, but these ranks have parts of the same layers: choose the samples by lite.data_parallel().rank()",
          loader.number, rank);
    }
    throw DataError(
        "loader {}: the first batch on rank {} differs from rank 0's, but each batch is divided among the ranks: create the same data on every rank (the same seed, before setup of the model), or set up the loader with Distribute::per_rank",
        loader.number, rank);
  }
}

int64_t Loop::sum_counts(const LoaderRecord& loader, int64_t count) {
  const Agreed agreed = agreement_.agree({.act = Act::share_count,
                                          .subject = loader.number,
                                          .number = loader.batches + 1,
                                          .count = static_cast<double>(count)});
  return static_cast<int64_t>(agreed.count);
}

void Loop::begin_batch(LoaderRecord& loader, const BatchShare& share) {
  ++loader.batches;
  current_ = &loader;
  share_ = share;
  if (autocast_dtype_) {
    autocast_.reset();
    autocast_ = std::make_unique<Autocast>(device_.type(), *autocast_dtype_);
  }
}

void Loop::end_epoch(LoaderRecord& loader) {
  leave();
  agreement_.agree({.act = Act::end_loader, .subject = loader.number, .number = loader.batches});
}

void Loop::leave() {
  share_.reset();
  current_ = nullptr;
  autocast_.reset();
}

uint64_t mix_checksum(uint64_t before, const Tensor& tensor) {
  return hash64(std::array<uint64_t, 2>{before, parallel::checksum(tensor)});
}

}  // namespace stretto::lite
