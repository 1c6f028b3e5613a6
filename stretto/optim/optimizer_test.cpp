#include "stretto/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/parameter_piece.h"
#include "stretto/tensor/memory.h"

namespace stretto::optim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Optimizer, StepsItsPiecesOnlyWithTheirSettings) {
  const auto optimizer = sgd({.lr = 0.5, .weight_decay = 0.1});
  const Buffers buffers = {at::ones({6}), at::ones({6}), {}};
  optimizer->bind(
      buffers,
      {{.name = "a", .layout = {{2}}, .begin = 0, .end = 2},
       {.name = "b", .layout = {{1}}, .begin = 4, .end = 5, .weight_decay = false},
       {.name = "c", .layout = {{1}}, .begin = 5, .end = 6, .weight_decay = false, .lr_factor = 0.1}},
      plain_memory());
  optimizer->step({.lr = 0.5}, 2.0);
  EXPECT_TRUE(at::allclose(buffers.master, at::tensor({-0.05f, -0.05f, 1.0f, 1.0f, 0.0f, 0.9f}), 0, 1e-6));
  EXPECT_TRUE(at::equal(buffers.grad, at::tensor({0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f})));
  EXPECT_EQ(optimizer->steps_done(), 1);
}

TEST(Optimizer, TheSchedulesMomentumReplacesItsOwn) {
  const Buffers ours = {at::ones({4}), at::ones({4}), {}}, theirs = {at::ones({4}), at::ones({4}), {}};
  const auto scheduled = adamw({.betas = {0.5, 0.999}}), own = adamw({});
  for (const auto& [optimizer, buffers] : {std::pair(&scheduled, ours), {&own, theirs}})
    (*optimizer)->bind(buffers, {{.name = "w", .layout = {{4}}, .end = 4}}, plain_memory());
  for (int step = 0; step < 3; ++step) {
    for (const Buffers& buffers : {ours, theirs}) Tensor(buffers.grad).fill_(1.0 / (1 + step));
    scheduled->step({.lr = 0.1, .momentum = 0.9}, 1);
    own->step({.lr = 0.1}, 1);
  }
  EXPECT_TRUE(at::equal(ours.master, theirs.master));
  EXPECT_EQ(own->base_rates().momentum, 0.9);
  EXPECT_FALSE(sgd({})->base_rates().momentum.has_value());
}

// Checkpoints rely on names, shapes, the region of a shard in its tensor, and references to live memory.
TEST(Optimizer, DescribesItsState) {
  const auto optimizer = adamw({});
  const Buffers buffers = {at::ones({10}), at::ones({10}), {}};
  optimizer->bind(buffers,
                  {{.name = "w", .layout = {{4, 3}}, .first = 5, .end = 7, .holders = {.set = 1, .ranks = 2}},
                   {.name = "b", .layout = {{3}}, .begin = 7, .end = 10}},
                  plain_memory());
  optimizer->step({.lr = 0.1}, 1);
  State state;
  optimizer->add_state(state, "optimizer");
  std::vector<std::string> names;
  for (const Entry& entry : state.tensors) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("optimizer.exp_avg.w", "optimizer.exp_avg_sq.w", "optimizer.exp_avg.b",
                                 "optimizer.exp_avg_sq.b"));
  const Entry& entry = state.tensors[0];
  EXPECT_THAT(entry.shape, ElementsAre(4, 3));
  EXPECT_EQ(entry.holders, (Holders{.set = 1, .ranks = 2}));
  ASSERT_EQ(entry.pieces.size(), 1u);
  EXPECT_EQ(entry.pieces[0].region, flat_region({4, 3}, 5, 12));
  EXPECT_TRUE(at::allclose(entry.pieces[0].data, at::full({7}, 0.1f)));
  EXPECT_EQ(state.scalars.at("optimizer"), (nlohmann::json{{"type", "AdamW"}, {"steps", 1}}));
  EXPECT_EQ(optimizer->state_bytes(), 2 * 10 * 4);
}

TEST(Optimizer, ResumesAfterTheSavedStep) {
  const auto make = [](const Buffers& buffers) {
    auto optimizer = adamw({});
    optimizer->bind(buffers, {{.name = "w", .layout = {{8}}, .end = 8}}, plain_memory());
    return optimizer;
  };
  const Buffers first = {at::ones({8}), at::zeros({8}), {}};
  const auto whole = make(first);
  const auto step = [](Optimizer& optimizer, const Buffers& buffers, int64_t number) {
    Tensor(buffers.grad).copy_(at::arange(8, at::kFloat) - static_cast<double>(number));
    optimizer.step({.lr = 0.1}, 1);
  };
  for (int64_t number = 0; number < 3; ++number) step(*whole, first, number);
  const Buffers second = {first.master.clone(), at::zeros({8}), {}};
  const auto resumed = make(second);
  State saved, fresh;
  whole->add_state(saved, "o");
  resumed->add_state(fresh, "o");
  for (size_t i = 0; i < saved.tensors.size(); ++i)
    Tensor(fresh.tensors[i].pieces[0].data).copy_(saved.tensors[i].pieces[0].data);
  resumed->resume(saved, "o");
  step(*whole, first, 4);
  step(*resumed, second, 4);
  EXPECT_TRUE(at::equal(first.master, second.master));

  saved.scalars["o"]["type"] = "SGD";
  EXPECT_THAT(message_of<ConfigError>([&] { resumed->resume(saved, "o"); }),
              HasSubstr("the state of SGD under \"o\"; this run uses AdamW"));
}

// An optimizer that requires whole tensors and has one number of state per tensor.
class NormDescent : public Optimizer {
 public:
  explicit NormDescent(Placement placement) : Optimizer({.lr = 1}), placement_(placement) {}
  std::string name() const override { return "NormDescent"; }
  Placement placement() const override { return placement_; }
  int64_t state_bytes() const override { return static_cast<int64_t>(norms_.nbytes()); }

 private:
  void make_state(const Allocator& allocator) override {
    norms_ = allocator(std::ssize(pieces()), at::kFloat, at::kCPU);
  }
  void update(const StepRates& rates, double grad_scale, int64_t, const TouchedRows&) override {
    for (size_t i = 0; i < pieces().size(); ++i) {
      const Buffers part = slice(buffers(), pieces()[i].begin, pieces()[i].end);
      norms_[static_cast<int64_t>(i)] = part.grad.norm() * grad_scale;
      part.master.sub_(part.grad * (rates.lr / part.grad.norm()));
      part.grad.zero_();
    }
  }
  void add_piece_state(State& state, const std::string& prefix, const ParameterPiece& piece) const override {
    const int64_t i = &piece - pieces().data();
    state.tensors.push_back(whole_entry(prefix + ".norm." + piece.name, {}, norms_.slice(0, i, i + 1)));
  }

  Placement placement_;
  Tensor norms_;
};

TEST(Optimizer, GetsWholeTensorsIfRequired) {
  NormDescent optimizer(Placement::whole_tensor);
  const Buffers buffers = {at::zeros({4}), at::tensor({3.0f, 4.0f, 5.0f, 12.0f}), {}};
  optimizer.bind(
      buffers,
      {{.name = "a", .layout = {{2}}, .end = 2}, {.name = "b", .layout = {{2}}, .begin = 2, .end = 4}},
      plain_memory());
  optimizer.step({.lr = 1}, 1);
  EXPECT_TRUE(at::allclose(buffers.master, -at::tensor({0.6f, 0.8f, 5.0f / 13, 12.0f / 13})));
  State state;
  optimizer.add_state(state, "o");
  EXPECT_EQ(state.tensors[1].name, "o.norm.b");
  EXPECT_EQ(state.tensors[1].pieces[0].data.item<float>(), 13);
}

TEST(Optimizer, MisuseIsRefused) {
  const Buffers buffers = {at::zeros({8}), at::zeros({8}), {}};
  const auto bind = [&](Placement placement, const ParameterPiece& piece) {
    return [=] { NormDescent(placement).bind(buffers, {piece}, plain_memory()); };
  };
  const ParameterPiece part = {.name = "w", .layout = {{4, 4}}, .first = 6, .end = 8};
  EXPECT_NO_THROW(bind(Placement::flat, part)());
  EXPECT_THAT(message_of(bind(Placement::rows, part)),
              has_all("w of shape [4, 4]", "split at element 6", "whole rows"));
  EXPECT_NO_THROW(bind(Placement::rows, {.name = "w", .layout = {{4, 4}}, .first = 8, .end = 8})());
  EXPECT_THAT(
      message_of(bind(Placement::whole_tensor, {.name = "w", .layout = {{4, 4}}, .first = 8, .end = 8})),
      HasSubstr("needs whole tensors"));
  const TensorLayout half = {{4, 8}, {{.axis = 1, .intervals = {{0, 4}}, .largest = 4}}};
  EXPECT_NO_THROW(bind(Placement::flat, {.name = "w", .layout = half, .first = 8, .end = 8})());
  EXPECT_THAT(message_of(bind(Placement::rows, {.name = "w", .layout = half, .first = 8, .end = 8})),
              HasSubstr("w of shape [4, 8] is cut over tp"));
  EXPECT_THAT(message_of(bind(Placement::flat, {.name = "w", .layout = {{9}}, .end = 9})),
              HasSubstr("lie outside of the buffers of 8 elements"));
  EXPECT_THROW(adamw({})->step({.lr = 1}, 1), Error);
  EXPECT_THROW(sgd({.nesterov = true}), ConfigError);
}

}  // namespace
}  // namespace stretto::optim
