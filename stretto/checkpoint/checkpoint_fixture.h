#pragma once

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>

#include "stretto/base/error.h"
#include "stretto/checkpoint/load.h"
#include "stretto/checkpoint/writer.h"
#include "stretto/comm/holders.h"
#include "stretto/comm/rank_threads.h"

// Tables of live memory, saved and loaded with ranks as threads.
namespace stretto::checkpoint {

// The state of a data-parallel run: every rank has all tensors.
inline State replicated_state(int seed, const Holders& holders = {}) {
  // Each rank has a separate generator, because ranks are threads.
  auto random = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
  State state;
  state.tensors.push_back(whole_entry("model.w", {30, 4}, at::randn({120}, random), holders));
  state.tensors.push_back(whole_entry("model.b", {4}, at::randn({4}, random), holders));
  state.tensors.push_back(whole_entry("model.steps", {}, at::full({1}, seed, at::kLong), holders));
  state.tensors.push_back(whole_entry("model.half", {7}, at::randn({7}, random).to(at::kBFloat16), holders));
  state.tensors.push_back(whole_entry("model.none", {0, 3}, at::empty({0}), holders));
  state.scalars["place"] = {{"epoch", seed}};
  return state;
}

// A state with one tensor [6, 4], which is divided among ranks by rows, or as flat shards that end inside
// rows.
inline State sharded_state(int rank, int ranks, bool by_rows, bool filled) {
  const Tensor whole = at::arange(24, at::kFloat);
  Entry entry = {.name = "w", .shape = {6, 4}, .pieces = {}};
  Piece piece;
  if (by_rows) {
    const int64_t begin = 6 * rank / ranks, end = 6 * (rank + 1) / ranks;
    piece = {{{begin, 0}, {end - begin, 4}, 0, (end - begin) * 4},
             whole.slice(0, begin * 4, end * 4).clone()};
  } else {
    const int64_t begin = 24 * rank / ranks, end = 24 * (rank + 1) / ranks;
    piece = {flat_region({6, 4}, begin, end), whole.slice(0, begin, end).clone()};
  }
  if (!filled) piece.data.fill_(-1);
  entry.pieces.push_back(piece);
  State state;
  state.tensors.push_back(entry);
  return state;
}

inline void save_state(const std::filesystem::path& folder, int ranks,
                       const std::function<State(const Group&)>& state, bool background = true) {
  comm::run_rank_threads(ranks, [&](Group& group) {
    Writer writer(group, {.folder = folder, .background = background});
    writer.save(state(group), 5);
    EXPECT_EQ(writer.finish(), "");
  });
}

inline State on_each_rank(const Group& group) { return replicated_state(1, comm::holders_of(group)); }

inline checkpoint_format::Manifest load_alone(const std::filesystem::path& checkpoint, State& state) {
  checkpoint_format::Manifest manifest;
  comm::run_rank_threads(1, [&](Group& group) { manifest = load(group, checkpoint, state); });
  return manifest;
}

inline std::string load_error(const std::filesystem::path& checkpoint, State state) {
  try {
    load_alone(checkpoint, state);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace stretto::checkpoint
