#include <algorithm>
#include <thread>

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/comm/store_handle.h"

namespace stretto {
namespace {

constexpr auto shortest_pause = std::chrono::milliseconds(2), longest_pause = std::chrono::milliseconds(200);
constexpr char done = 'd', failed = 'f';

void await(c10d::Store& store, const std::string& key) {
  for (auto pause = shortest_pause; !store.check({key}); pause = std::min(2 * pause, longest_pause))
    std::this_thread::sleep_for(pause);
}

}  // namespace

void Group::rank_0_first(const std::string& what, const std::function<void()>& work) {
  const std::string key = fmt::format("rank_0_first.{}", works_++);
  c10d::Store& store = *store_->store;
  if (rank_ != 0) {
    await(store, key);
    const std::string outcome = store.get_to_str(key);
    if (outcome[0] == failed) throw DistributedError("{}", outcome.substr(1));
    return;
  }
  cluster::FlightRecorder::Call recorded;
  if (store_->recorder) {
    recorded = store_->recorder->start({.sequence = works_ - 1,
                                        .group_size = size_,
                                        .operation = "work",
                                        .shape = what,
                                        .group = options_.name});
  }
  try {
    work();
  } catch (const std::exception& error) {
    recorded.ended(/*good=*/false);
    if (size_ > 1) store.set(key, failed + std::string(error.what()));
    throw;
  }
  recorded.ended(/*good=*/true);
  if (size_ > 1) store.set(key, std::string(1, done));
}

}  // namespace stretto
