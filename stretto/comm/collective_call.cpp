#include "stretto/comm/collective_call.h"

#include <array>

#include <fmt/format.h>

#include <c10/core/ScalarType.h>

namespace stretto::comm {
namespace {

// The properties besides the shape that all ranks must agree on.
std::string detail(const CollectiveCall& call) {
  constexpr std::array reductions = {"sum", "product", "min", "max"};
  const auto reduce = static_cast<size_t>(call.reduce);
  switch (static_cast<CollectiveOperation>(call.operation)) {
    case CollectiveOperation::all_reduce:
    case CollectiveOperation::reduce_scatter:
      return fmt::format(" ({})", reduce < reductions.size() ? reductions[reduce] : "?");
    case CollectiveOperation::reduce:
      return fmt::format(" ({}, root {})", reduce < reductions.size() ? reductions[reduce] : "?", call.root);
    case CollectiveOperation::broadcast:
      return fmt::format(" (root {})", call.root);
    default:
      return "";
  }
}

}  // namespace

std::string describe(const CollectiveCall& call) {
  constexpr std::array names = {"all_reduce",     "reduce",     "broadcast", "all_gather",
                                "reduce_scatter", "all_to_all", "barrier"};
  const auto operation = static_cast<size_t>(call.operation);
  if (call.operation == static_cast<int32_t>(CollectiveOperation::barrier)) return "barrier";
  const auto dtype = static_cast<at::ScalarType>(call.dtype);
  const bool known = call.dtype >= 0 && call.dtype < static_cast<int32_t>(at::ScalarType::NumOptions) &&
                     dtype != at::ScalarType::Undefined;
  return fmt::format("{} of {} {}{}", operation < names.size() ? names[operation] : "?", call.count,
                     known ? c10::getDtypeNames(dtype).first : "?", detail(call));
}

std::string describe_difference(int rank, const NumberedCall& theirs, int own_rank, const NumberedCall& own) {
  return fmt::format(
      "rank {} called {} as its collective #{}, rank {} called {} as #{}: all ranks must make the same calls in the same order",
      rank, describe(theirs.call), theirs.number, own_rank, describe(own.call), own.number);
}

}  // namespace stretto::comm
