#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/checkpoint_format/region_copy.h"
#include "stretto/checkpoint_format/tiling.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/arena.h"

// For any division of tensors over the mesh and any sharding by a strategy, the ranks together have each
// element of the global tensors once.
namespace stretto {
namespace {

class RandomLayouts {
 public:
  explicit RandomLayouts(unsigned seed) : random_(seed) {}
  int64_t below(int64_t end) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(end)); }

  // Layouts of one tensor at the `positions` of tp.
  std::vector<TensorLayout> of_tensor(int positions) {
    std::vector<int64_t> shape;
    for (int64_t axes = below(3); axes >= 0; --axes) shape.push_back(1 + below(9));
    std::vector<TensorLayout> layouts(static_cast<size_t>(positions), {.global = shape});
    if (below(4) == 0) return layouts;  // on every position
    const auto axis = static_cast<size_t>(below(std::ssize(shape)));
    const int64_t fused = 1 + 2 * below(2), part = shape[axis];  // as many tensors are fused into one
    shape[axis] *= fused;
    const int copies = positions % 2 == 0 ? 1 + static_cast<int>(below(2)) : 1;
    std::vector<int64_t> bounds = {0};  // of the positions in each fused tensor
    for (int cut = copies; cut < positions; cut += copies) bounds.push_back(below(part + 1));
    bounds.push_back(part);
    std::ranges::sort(bounds);
    int64_t largest = 0;
    for (size_t i = 1; i < bounds.size(); ++i) largest = std::max(largest, bounds[i] - bounds[i - 1]);
    for (int position = 0; position < positions; ++position) {
      const auto place = static_cast<size_t>(position / copies);
      Cut cut = {
          .axis = static_cast<int>(axis), .intervals = {}, .largest = fused * largest, .copies = copies};
      for (int64_t tensor = 0; tensor < fused; ++tensor)
        cut.intervals.push_back(Range{bounds[place], bounds[place + 1]}.shifted(tensor * part));
      layouts[static_cast<size_t>(position)] = {shape, {cut}};
    }
    return layouts;
  }

 private:
  std::mt19937 random_;
};

// The global indices of the local elements.
Tensor numbered(const TensorLayout& layout) {
  const Tensor values = at::empty({count_elements(layout.local())});
  for (const LocalRun& run : layout.runs()) {
    values.slice(0, run.local, run.local + run.elements)
        .copy_(at::arange(run.global, run.global + run.elements, at::kFloat));
  }
  return values.view(layout.local());
}

std::vector<parallel::NamedParameter> parameters_at(size_t position,
                                                    const std::vector<std::vector<TensorLayout>>& layouts) {
  std::vector<parallel::NamedParameter> parameters;
  for (const auto& of_positions : layouts) {
    const TensorLayout& layout = of_positions[position];
    Tensor values = numbered(layout);
    parameters.push_back({.name = std::to_string(parameters.size()),
                          .unit = "",
                          .tensor = values.requires_grad_(),
                          .layout = layout,
                          .weight_decay = true});
  }
  return parameters;
}

bool is_first_copy(const TensorLayout& layout, int position) {
  return layout.cuts.empty() ? position == 0 : position % layout.cuts[0].copies == 0;
}

struct Parts {
  std::vector<Region> regions;
  Tensor values;  // of the whole tensor
};

void add(const Entry& entry, Parts& parts) {
  if (!parts.values.defined()) parts.values = at::full({count_elements(entry.shape)}, -1.0, at::kFloat);
  for (const Piece& piece : entry.pieces) {
    parts.regions.push_back(piece.region);
    const Tensor plain = piece.data.contiguous();
    checkpoint_format::copy_common(piece.region, static_cast<const std::byte*>(plain.const_data_ptr()),
                                   whole_region(entry.shape),
                                   static_cast<std::byte*>(parts.values.mutable_data_ptr()), sizeof(float));
  }
}

// The state of one rank, as an engine describes it.
State state_of(const parallel::Arena& arena) {
  State state;
  for (const auto& parameter : arena.parameters())
    state.tensors.push_back(arena.master_entry(parameter, parameter.info.name));
  const auto optimizer = optim::adamw({});
  optimizer->bind(arena.owned_buffers(), arena.owned_pieces(), plain_memory());
  optimizer->add_state(state, "optimizer");
  return state;
}

struct Ranks {
  int positions, shards;  // of tp; of each copy
};

// Returns the pieces of all ranks, by the entry's name. Pieces of equal ranks are counted once.
std::map<std::string, Parts> parts_of(const std::vector<std::vector<TensorLayout>>& layouts,
                                      const Sharding& row, Precision precision, const Ranks& ranks) {
  std::map<std::string, Parts> parts;
  std::vector<int64_t> offsets;  // of the parameters in the arena
  for (int position = 0; position < ranks.positions; ++position) {
    for (int shard = 0; shard < ranks.shards; ++shard) {
      const auto held = [&](Held wanted) { return ranks.shards > 1 ? wanted : Held::replicated; };
      const parallel::ArenaOptions::Copies copies = {
          .holders = {.set = 1, .ranks = ranks.shards, .me = shard}};
      const parallel::Arena arena(parameters_at(static_cast<size_t>(position), layouts),
                                  {.precision = precision,
                                   .optimizer = held(row.optimizer),
                                   .gradients = held(row.gradients),
                                   .parameters = held(row.parameters),
                                   .shards = ranks.shards,
                                   .shard = shard,
                                   .copies = copies,
                                   .copies_of_whole = copies});
      std::vector<int64_t> begins;
      for (const auto& parameter : arena.parameters()) begins.push_back(parameter.begin);
      if (offsets.empty()) offsets = begins;
      EXPECT_EQ(begins, offsets) << "equal offsets at all positions of tp";
      for (const Entry& entry : state_of(arena).tensors) {
        const auto tensor = std::stoul(entry.name.substr(entry.name.rfind('.') + 1));
        if (entry.holders.me == 0 && is_first_copy(layouts[tensor][static_cast<size_t>(position)], position))
          add(entry, parts[entry.name]);
      }
    }
  }
  return parts;
}

TEST(Layouts, FirstCopiesPartitionEachTensor) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    RandomLayouts random(seed);
    const Ranks ranks = {1 + static_cast<int>(random.below(4)), 1 + static_cast<int>(random.below(3))};
    std::vector<std::vector<TensorLayout>> layouts;
    for (int tensor = 0; tensor < 4; ++tensor) layouts.push_back(random.of_tensor(ranks.positions));
    for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        const auto parts = parts_of(layouts, find_sharding(strategy), precision, ranks);
        EXPECT_EQ(parts.size(), 3 * layouts.size());
        for (const auto& [name, part] : parts) {
          const bool is_master = name.find('.') == std::string::npos;
          const auto tensor = std::stoul(name.substr(name.rfind('.') + 1));
          const auto wrong = checkpoint_format::first_miscovered(layouts[tensor][0].global, part.regions);
          EXPECT_FALSE(wrong) << strategy << " " << name << ", seed " << seed << ": element "
                              << ::testing::PrintToString(wrong->element) << " is held " << wrong->regions
                              << " times";
          if (is_master) {
            EXPECT_TRUE(part.values.equal(at::arange(part.values.numel(), at::kFloat))) << name;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stretto
