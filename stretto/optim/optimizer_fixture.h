#pragma once

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "stretto/optim/parameter_piece.h"
#include "stretto/optim/registry.h"
#include "stretto/settings/read.h"
#include "stretto/settings/yaml.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {

struct OptimizerSection {
  settings::Choice optimizer = settings::Choice(optimizer_kinds(), "AdamW", "which optimizer");
  void fields(settings::Fields& field) { field("optimizer", optimizer, "the update rule"); }
};

// The optimizer of a section of a recipe.
inline std::unique_ptr<Optimizer> from_yaml(const std::string& section) {
  OptimizerSection recipe;
  settings::read_fields(settings::fields_of(recipe), settings::parse_yaml("optimizer: " + section, "r.yaml"));
  return make_optimizer(recipe.optimizer);
}

// The weights and gradients of scripts/make_golden_optimizers.py, in buffers with padding between the
// parameters.
struct OptimizerRun {
  std::vector<ParameterPiece> pieces;
  Buffers buffers;
  std::unique_ptr<Optimizer> optimizer;

  OptimizerRun(std::unique_ptr<Optimizer> made, at::ScalarType type)
      : pieces{{.name = "w", .layout = {{4, 3}}, .begin = 0, .end = 12},
               {.name = "t", .layout = {{2, 3, 2}}, .begin = 16, .end = 28},
               {.name = "b", .layout = {{3}}, .begin = 32, .end = 35, .weight_decay = false}},
        buffers{at::zeros({48}, type), at::zeros({48}, type), {}},
        optimizer(std::move(made)) {
    fill(buffers.master, [](int64_t p, int64_t i) { return std::sin(1 + i + 10 * p); });
    // t is a wide matrix in the script's cases of Muon.
    if (optimizer->name() == "Muon") {
      pieces[1].layout = {{2, 6}};
      pieces[0].is_hidden_matrix = pieces[1].is_hidden_matrix = true;
    }
    optimizer->bind(buffers, pieces, plain_memory());
  }

  void fill(const Tensor& buffer, const std::function<double(int64_t, int64_t)>& value) const {
    for (size_t p = 0; p < pieces.size(); ++p) {
      for (int64_t i = 0; i < pieces[p].end - pieces[p].begin; ++i)
        buffer[pieces[p].begin + i] = value(static_cast<int64_t>(p), i);
    }
  }

  void step(const StepRates& rates, int64_t step) const {
    constexpr double scale = 0.25;
    fill(buffers.grad, [&](int64_t p, int64_t i) {
      return (i + step) % 5 == 0
                 ? 0
                 : std::cos((i + 1) * (step + 1) + p) * static_cast<double>(1 + step % 3) / scale;
    });
    optimizer->step(rates, scale);
    ASSERT_EQ(buffers.grad.ne(0).sum().item<int64_t>(), 0);
  }
};

inline State state_of(const OptimizerRun& run) {
  State state;
  run.optimizer->add_state(state, "optimizer");
  return state;
}

// Resumes an interrupted run: saves the state and loads it into a new optimizer.
inline OptimizerRun resumed(const OptimizerRun& run, std::unique_ptr<Optimizer> made) {
  OptimizerRun fresh(std::move(made), run.buffers.master.scalar_type());
  fresh.buffers.master.copy_(run.buffers.master);
  const State saved = state_of(run), target = state_of(fresh);
  for (size_t i = 0; i < saved.tensors.size(); ++i) {
    EXPECT_EQ(saved.tensors[i].name, target.tensors[i].name);
    EXPECT_EQ(saved.tensors[i].shape, target.tensors[i].shape);
    Tensor(target.tensors[i].pieces[0].data).copy_(saved.tensors[i].pieces[0].data);
  }
  fresh.optimizer->resume(saved, "optimizer");
  return fresh;
}

}  // namespace stretto::optim
