#pragma once

#include <concepts>
#include <memory>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <c10/util/Type.h>

#include "stretto/base/error.h"
#include "stretto/nn/block_observer.h"
#include "stretto/nn/tensors_in.h"

namespace stretto::nn {

// Calls the observer around forward.
class ObservedBlock : public Block {
 protected:
  // Calls forward(arguments...) and the observer. Backward is detected by the arguments that consist of
  // tensors (nn/tensors_in.h).
  template <class Forward, class... Arguments>
  auto observed(const Forward& forward, Arguments&&... arguments) const {
    using Result = std::decay_t<std::invoke_result_t<Forward, Arguments...>>;
    static_assert(
        tensors_in<Result>,
        "nn::sharded: forward must return a Tensor, or an optional, vector, array, pair, tuple or map "
        "of tensors: else its backward is not known");
    if (link() == nullptr) return Result(forward(std::forward<Arguments>(arguments)...));
    BlockPass pass(link());
    std::tuple<Kept<Arguments>...> kept(std::forward<Arguments>(arguments)...);
    Result result = std::apply(
        [&](auto&... each) {
          (for_each_tensor(each, [&](Tensor& tensor) { pass.watch_argument(tensor); }), ...);
          return Result(forward(static_cast<Arguments&&>(each)...));
        },
        kept);
    for_each_tensor(result, [&](Tensor& tensor) { pass.watch_result(tensor); });
    return result;
  }

 private:
  template <class T>
  using Kept = std::conditional_t<tensors_in<std::decay_t<T>>, std::decay_t<T>, T&&>;
};

namespace detail {

// Whether forward can be called without its last argument.
template <class M, class Arguments, class Indices>
inline constexpr bool callable_with = false;
template <class M, class... A, size_t... i>
inline constexpr bool callable_with<M, std::tuple<A...>, std::index_sequence<i...>> =
    requires(M& module, std::tuple<A...>& a) {
  module.forward(std::get<i>(a)...);
};
template <class M, class... A>
inline constexpr bool has_default_arguments = [] {
  if constexpr (sizeof...(A) == 0) {
    return false;
  } else {
    return callable_with<M, std::tuple<A...>, std::make_index_sequence<sizeof...(A) - 1>>;
  }
}();

// forward of a Sharded<M>: with M's own signature if it has exactly one and no default arguments, so that it
// overrides a virtual one and works in torch::nn::Sequential; else a template.
template <class M, class Signature>
class ShardedForward : public M, public ObservedBlock {
 public:
  using M::M;
  explicit ShardedForward(const M& module) : M(module) {}

  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    return observed([this](auto&&... a) { return M::forward(std::forward<decltype(a)>(a)...); },
                    std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  auto forward(Arguments&&... arguments) const {
    return observed([this](auto&&... a) { return M::forward(std::forward<decltype(a)>(a)...); },
                    std::forward<Arguments>(arguments)...);
  }
};

template <class M, class Owner, class Result, class... A>
requires(!has_default_arguments<M, A...> &&
         !std::is_reference_v<Result>) class ShardedForward<M, Result (Owner::*)(A...)>
    : public M, public ObservedBlock {
 public:
  using M::M;
  explicit ShardedForward(const M& module) : M(module) {}
  // M's may be virtual.
  Result forward(A... arguments) {  // NOLINT(modernize-use-override)
    return observed([this](A... a) -> Result { return M::forward(std::forward<A>(a)...); },
                    std::forward<A>(arguments)...);
  }
};

template <class M, class Owner, class Result, class... A>
requires(!has_default_arguments<M, A...> &&
         !std::is_reference_v<Result>) class ShardedForward<M, Result (Owner::*)(A...) const>
    : public M, public ObservedBlock {
 public:
  using M::M;
  explicit ShardedForward(const M& module) : M(module) {}
  Result forward(A... arguments) const {  // NOLINT(modernize-use-override)
    return observed([this](A... a) -> Result { return M::forward(std::forward<A>(a)...); },
                    std::forward<A>(arguments)...);
  }
};

template <class M>
struct SignatureOf {
  using type = void;
};
template <class M>
requires requires { &M::forward; }
struct SignatureOf<M> {
  using type = decltype(&M::forward);
};

}  // namespace detail

// A module of type M that is a unit for sharded strategies: the same forward, parameters and names.
template <class M>
class Sharded final : public detail::ShardedForward<M, typename detail::SignatureOf<M>::type> {
 public:
  using detail::ShardedForward<M, typename detail::SignatureOf<M>::type>::ShardedForward;
  torch::nn::Module& module() override { return *this; }
};

// Declares a block, such as a transformer layer, to be one unit for sharded strategies; it has no effect
// under other strategies. Register the result, and call its forward:
//
//   layers->push_back(nn::sharded(std::make_shared<MyLayer>(width)));
//
// The result has the tensors and children of `block` under the same names; discard `block`, whose forward is
// not observed. Keep the result as std::shared_ptr<nn::Sharded<MyLayer>>: a non-virtual forward is not
// observed through a pointer to MyLayer. Throws ConfigError if the class of `block` is derived from M.
template <class M>
requires std::derived_from<M, torch::nn::Module> std::shared_ptr<Sharded<M>> sharded(
    const std::shared_ptr<M>& block) {
  if (typeid(*block) != typeid(M)) {
    throw ConfigError("nn::sharded: the block is a {}, passed as a {}; pass a pointer to its own class",
                      block->name(), c10::demangle(typeid(M).name()));
  }
  return std::make_shared<Sharded<M>>(*block);
}

// Like sharded(std::shared_ptr), for a module holder (TORCH_MODULE).
template <class Holder>
requires requires(const Holder& holder) { typename Holder::ContainedType; }
auto sharded(const Holder& block) { return sharded(block.ptr()); }

// Constructs a module of type M that is one unit.
template <class M, class... Arguments>
std::shared_ptr<Sharded<M>> make_sharded(Arguments&&... arguments) {
  return std::make_shared<Sharded<M>>(std::forward<Arguments>(arguments)...);
}

}  // namespace stretto::nn
