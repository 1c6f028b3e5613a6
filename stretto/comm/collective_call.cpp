#include "stretto/comm/collective_call.h"

#include <array>

#include <fmt/format.h>

#include <c10/core/ScalarType.h>

namespace stretto::comm {
namespace {

// The properties besides the shape that all ranks must agree on.
std::string detail(const CollectiveCall& call, std::span<const int> world_ranks) {
  constexpr std::array reductions = {"sum", "product", "min", "max"};
  const auto reduce = static_cast<size_t>(call.reduce);
  const int root = world_rank(world_ranks, call.root);
  switch (static_cast<CollectiveOperation>(call.operation)) {
    case CollectiveOperation::all_reduce:
    case CollectiveOperation::reduce_scatter:
      return fmt::format(" ({})", reduce < reductions.size() ? reductions[reduce] : "?");
    case CollectiveOperation::reduce:
      return fmt::format(" ({}, root {})", reduce < reductions.size() ? reductions[reduce] : "?", root);
    case CollectiveOperation::broadcast:
      return fmt::format(" (root {})", root);
    default:
      return "";
  }
}

}  // namespace

int world_rank(std::span<const int> world_ranks, int rank) {
  const bool known = rank >= 0 && rank < std::ssize(world_ranks);
  return known ? world_ranks[static_cast<size_t>(rank)] : rank;
}

std::string describe(const CollectiveCall& call, std::span<const int> world_ranks) {
  constexpr std::array names = {"all_reduce",     "reduce",     "broadcast", "all_gather",
                                "reduce_scatter", "all_to_all", "barrier"};
  const auto operation = static_cast<size_t>(call.operation);
  if (call.operation == static_cast<int32_t>(CollectiveOperation::barrier)) return "barrier";
  const auto dtype = static_cast<at::ScalarType>(call.dtype);
  const bool known = call.dtype >= 0 && call.dtype < static_cast<int32_t>(at::ScalarType::NumOptions) &&
                     dtype != at::ScalarType::Undefined;
  return fmt::format("{} of {} {}{}", operation < names.size() ? names[operation] : "?", call.count,
                     known ? c10::getDtypeNames(dtype).first : "?", detail(call, world_ranks));
}

std::string describe_difference(int rank, const NumberedCall& theirs, int own_rank, const NumberedCall& own,
                                std::span<const int> world_ranks) {
  return fmt::format(
      "rank {} called {} as its collective #{}, rank {} called {} as #{}: all ranks must make the same calls in the same order",
      rank, describe(theirs.call, world_ranks), theirs.number, own_rank, describe(own.call, world_ranks),
      own.number);
}

}  // namespace stretto::comm
