#include "stretto/nn/block_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/nn/activation_checkpoint.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"

namespace stretto::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Events = std::vector<std::string>;

// Records "+forward a", "-forward a", "+backward a", "-backward a", and fails if they are not nested pairs.
struct Recorder : BlockObserver {
  explicit Recorder(torch::nn::Module& root) : blocks(collect_blocks(root)) {
    for (Block* block : blocks) block->observe(this);
  }
  ~Recorder() override {
    for (Block* block : blocks) block->observe(nullptr);
  }
  void before_forward(Block& block) override { add("+forward ", block); }
  void after_forward(Block& block) noexcept override { add("-forward ", block); }
  void before_backward(Block& block) override { add("+backward ", block); }
  void after_backward(Block& block) noexcept override { add("-backward ", block); }
  void add(const char* what, const Block& block) { events.push_back(what + block.path()); }
  Events take() { return std::exchange(events, {}); }

  std::vector<Block*> blocks;
  Events events;
};

// tanh(x W^T); records when its own part of backward runs.
struct Layer : torch::nn::Module {
  explicit Layer(int64_t width) : inner(register_module("inner", std::make_shared<Linear>(width, width))) {
    at::NoGradGuard no_grad;
    inner->weight.copy_(at::eye(width) * 0.5);
    inner->bias.zero_();
  }
  Tensor forward(const Tensor& x) const { return at::tanh(inner->forward(x)); }
  std::shared_ptr<Linear> inner;
};

struct Net : torch::nn::Module {
  Net() {
    a = register_module("a", make_sharded<Layer>(3));
    b = register_module("b", make_sharded<Layer>(3));
  }
  Tensor forward(const Tensor& x) const { return b->forward(a->forward(x)).sum(); }
  std::shared_ptr<Sharded<Layer>> a, b;
};

Tensor input(bool needs_grad = true) {
  return at::linspace(-1, 1, 6, at::kFloat).view({2, 3}).requires_grad_(needs_grad);
}

TEST(BlockObserver, ForwardAndBackwardOfEachBlockInOrder) {
  Net net;
  Recorder recorder(net);
  const Tensor loss = net.forward(input());
  EXPECT_THAT(recorder.take(), ElementsAre("+forward a", "-forward a", "+forward b", "-forward b"));
  loss.backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+backward b", "-backward b", "+backward a", "-backward a"));
}

TEST(BlockObserver, GradientsEqualThoseOfThePlainModule) {
  Net plain, observed;
  const Tensor x = input(), y = input();
  plain.forward(x).backward();
  Recorder recorder(observed);
  observed.forward(y).backward();
  EXPECT_TRUE(at::equal(x.grad(), y.grad()));
  for (const auto& item : plain.named_parameters())
    EXPECT_TRUE(at::equal(item.value().grad(), observed.named_parameters()[item.key()].grad())) << item.key();
}

TEST(BlockObserver, WithoutAnObserverTheGraphEqualsThatOfThePlainModule) {
  Net net;
  const Tensor x = input();
  const Tensor plain = net.a->Layer::forward(x), block = net.a->forward(x);
  EXPECT_EQ(plain.grad_fn()->name(), block.grad_fn()->name());
  EXPECT_EQ(plain.grad_fn()->next_edge(0).function->name(), block.grad_fn()->next_edge(0).function->name());
  EXPECT_EQ(block.grad_fn()->next_edge(0).function->next_edge(0).function.get(),
            torch::autograd::impl::gradient_edge(x).function.get());
}

TEST(BlockObserver, WithoutGradientsOnlyForwardIsReported) {
  Net net;
  Recorder recorder(net);
  {
    at::NoGradGuard no_grad;
    EXPECT_FALSE(net.forward(input()).requires_grad());
  }
  EXPECT_THAT(recorder.take(), ElementsAre("+forward a", "-forward a", "+forward b", "-forward b"));
  for (const Tensor& parameter : net.parameters()) Tensor(parameter).requires_grad_(false);
  net.forward(input(false));
  EXPECT_EQ(recorder.take().size(), 4);
}

TEST(BlockObserver, BackwardEndsWithAutogradIfNoArgumentNeedsAGradient) {
  Net net;
  Recorder recorder(net);
  const Tensor loss = net.forward(input(false));
  recorder.take();
  loss.backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+backward b", "-backward b", "+backward a", "-backward a"));
  EXPECT_TRUE(net.a->inner->weight.grad().defined());
}

struct Outer : torch::nn::Module {
  Outer() : inner(register_module("part", make_sharded<Layer>(3))) {}
  Tensor forward(const Tensor& x) const { return inner->forward(x) + x; }
  std::shared_ptr<Sharded<Layer>> inner;
};

TEST(BlockObserver, BlocksInsideOfBlocks) {
  Sharded<Outer> outer;
  Recorder recorder(outer);
  outer.forward(input()).sum().backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+forward ", "+forward part", "-forward part", "-forward ",
                                           "+backward ", "+backward part", "-backward part", "-backward "));
}

TEST(BlockObserver, EachUseOfABlockIsASeparatePass) {
  Net net;
  Recorder recorder(net);
  const Tensor loss = net.a->forward(net.a->forward(input())).sum();
  recorder.take();
  loss.backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+backward a", "-backward a", "+backward a", "-backward a"));
}

TEST(BlockObserver, SeveralBackwardPassesOfOneForward) {
  Net net;
  Recorder recorder(net);
  const Tensor loss = net.forward(input());
  recorder.take();
  loss.backward({}, /*retain_graph=*/true);
  const Events first = recorder.take();
  EXPECT_EQ(first.size(), 4);
  loss.backward();
  EXPECT_EQ(recorder.take(), first);
}

TEST(BlockObserver, ActivationCheckpointingComputesForwardTwice) {
  Net net;
  Recorder recorder(net);
  const Tensor x = input(), y = input();
  const auto forward = [&](const Carry& carry) { return net.a->forward(carry[0]); };
  const Tensor loss = activation_checkpoint(forward, {x}, net.a->parameters()).sum();
  EXPECT_THAT(recorder.take(), ElementsAre("+forward a", "-forward a"));
  loss.backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+forward a", "-forward a", "+backward a", "-backward a"));
  const Tensor gradient = net.a->inner->weight.grad().clone();
  net.zero_grad();
  net.a->forward(y).sum().backward();
  EXPECT_TRUE(at::equal(net.a->inner->weight.grad(), gradient));
  EXPECT_TRUE(at::equal(x.grad(), y.grad()));
}

struct CheckpointedLayer : Layer {
  using Layer::Layer;
  Tensor forward(const Tensor& x) const {
    return activation_checkpoint([this](const Carry& carry) { return Layer::forward(carry[0]); }, {x},
                                 parameters());
  }
};

TEST(BlockObserver, ABlockMayCheckpointItsOwnActivations) {
  Sharded<CheckpointedLayer> layer(3);
  Recorder recorder(layer);
  layer.forward(input()).sum().backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+forward ", "-forward ", "+backward ", "-backward "));
}

struct Throwing : torch::autograd::Function<Throwing> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x * 1; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw Error("backward of the test");
  }
};

struct Fragile : Layer {
  using Layer::Layer;
  Tensor forward(const Tensor& x, bool fails_forward, bool fails_backward) const {
    const Tensor y = Layer::forward(x);
    if (fails_forward) throw Error("forward of the test");
    return fails_backward ? Throwing::apply(y) : y;
  }
};

TEST(BlockObserver, ExceptionsEndThePass) {
  Sharded<Fragile> layer(3);
  Recorder recorder(layer);
  EXPECT_THROW(layer.forward(input(), true, false), Error);
  EXPECT_THAT(recorder.take(), ElementsAre("+forward ", "-forward "));
  const Tensor broken = layer.forward(input(), false, true).sum();
  recorder.take();
  EXPECT_THROW(broken.backward(), Error);
  EXPECT_THAT(recorder.take(), ElementsAre("+backward ", "-backward "));
  layer.forward(input(), false, false).sum().backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+forward ", "-forward ", "+backward ", "-backward "));
}

struct Refusing : BlockObserver {
  void before_forward(Block&) override {
    if (refuses_forward) throw Error("cannot gather");
  }
  void before_backward(Block&) override { throw Error("cannot gather for backward"); }
  void after_forward(Block&) noexcept override { ++ended; }
  void after_backward(Block&) noexcept override { ++ended; }
  bool refuses_forward = true;
  int ended = 0;
};

TEST(BlockObserver, ExceptionsOfAnObserverPropagate) {
  Sharded<Layer> layer(3);
  Refusing refusing;
  layer.observe(&refusing);
  EXPECT_THROW(layer.forward(input()), Error);
  EXPECT_EQ(refusing.ended, 0);
  refusing.refuses_forward = false;
  const Tensor loss = layer.forward(input()).sum();
  EXPECT_THROW(loss.backward(), Error);
  EXPECT_EQ(refusing.ended, 1);
  layer.observe(nullptr);
}

// Outputs of all shapes; an argument that is not used, one that is passed through, and one modified in place.
struct Many : torch::nn::Module {
  Many() : w(register_parameter("w", at::ones({3}))) {}
  std::tuple<Tensor, std::vector<Tensor>, std::optional<Tensor>> forward(const std::vector<Tensor>& x,
                                                                         int extra,
                                                                         const Tensor& /*unused*/ = {}) {
    return {x[0] * w, {x[1], w, x[1].detach() + extra}, std::nullopt};
  }
  Tensor w;
};

TEST(BlockObserver, TensorsInsideOfArgumentsAndResults) {
  Sharded<Many> block;
  Recorder recorder(block);
  const Tensor x = input(), y = input();
  const auto [product, list, nothing] = block.forward(std::vector<Tensor>{x, y}, 2);
  EXPECT_FALSE(nothing.has_value());
  recorder.take();
  (product.sum() + list[0].sum() + list[1].sum()).backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+backward ", "-backward "));
  EXPECT_TRUE(at::equal(y.grad(), at::ones_like(y)));
  EXPECT_TRUE(at::equal(block.w.grad(), x.detach().sum(0) + 1));
  const auto again = block.forward(std::vector<Tensor>{x, y}, 2, input());
  recorder.take();
  std::get<1>(again)[1].sum().backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+backward ", "-backward ")) << "no argument received a gradient";
  block.w.sum().backward();
  EXPECT_THAT(recorder.take(), IsEmpty()) << "no hook stays on the parameter";
}

TEST(BlockObserver, AnArgumentThatIsUsedElsewhereTooDoesNotDelayTheEnd) {
  Net net;
  Recorder recorder(net);
  const Tensor memory = input() * 1;
  const Tensor loss = (net.b->forward(net.a->forward(memory) + memory) + memory).sum();
  recorder.take();
  loss.backward();
  EXPECT_THAT(recorder.take(), ElementsAre("+backward b", "-backward b", "+backward a", "-backward a"));
}

struct InPlace : torch::nn::Module {
  Tensor forward(const Tensor& x) { return x.mul_(3); }
};

TEST(BlockObserver, ArgumentsAndResultsMayBeModifiedInPlace) {
  Sharded<InPlace> block;
  Recorder recorder(block);
  const Tensor x = input(), before = x * 2;
  Tensor y = block.forward(before);
  y.add_(1);
  EXPECT_TRUE(at::allclose(before.detach(), x.detach() * 6 + 1)) << "as without an observer";
  (y.sum() + before.sum()).backward();
  EXPECT_TRUE(at::equal(x.grad(), at::full_like(x, 12)));
  EXPECT_THAT(recorder.take(), ElementsAre("+forward ", "-forward ", "+backward ", "-backward "));
}

TEST(BlockObserver, ABackwardMayOutliveTheModuleAndTheObserver) {
  Tensor of_dead_module, of_dead_observer;
  {
    Net net;
    Recorder recorder(net);
    of_dead_module = net.forward(input());
  }
  of_dead_module.backward();
  Net net;
  {
    Recorder recorder(net);
    of_dead_observer = net.forward(input());
  }
  of_dead_observer.backward();
  EXPECT_TRUE(net.a->inner->weight.grad().defined());
}

TEST(Sharded, KeepsNamesTensorsAndOrder) {
  const auto layer = std::make_shared<Layer>(3);
  struct Root : torch::nn::Module {
  } root;
  torch::nn::Linear plain(3, 3);
  add_layer(root, "encoder.layer.0", sharded(layer));
  add_layer(root, "encoder.layer.1", make_sharded<Outer>());
  add_layer(root, "again",
            std::static_pointer_cast<torch::nn::Module>(
                root.named_children()["encoder"]->named_children()["layer"]->children()[0]));
  root.register_module("head", sharded(plain));
  EXPECT_TRUE(root.named_children()["encoder"]->named_parameters()["layer.0.inner.weight"].is_same(
      layer->inner->weight));
  EXPECT_TRUE(root.named_children()["head"]->named_parameters()["weight"].is_same(plain->weight));
  Events paths;
  for (const Block* block : collect_blocks(root)) paths.push_back(block->path());
  EXPECT_THAT(paths, ElementsAre("encoder.layer.0", "encoder.layer.1", "encoder.layer.1.part", "head"));
}

TEST(Sharded, RefusesADerivedClass) {
  const std::shared_ptr<Layer> derived = std::make_shared<Fragile>(3);
  EXPECT_THAT(message_of<ConfigError>([&] { sharded(derived); }),
              HasSubstr("pass a pointer to its own class"));
}

struct Doubling : torch::nn::Module {
  Tensor forward(const Tensor& x) { return x * 2; }  // Sequential does not accept a const forward
};

TEST(Sharded, FitsIntoSequential) {
  torch::nn::Sequential sequence(make_sharded<Doubling>(), sharded(torch::nn::Linear(3, 3)));
  Recorder recorder(*sequence);
  EXPECT_EQ(sequence->forward(input()).sizes(), at::IntArrayRef({2, 3}));
  EXPECT_THAT(recorder.take(), ElementsAre("+forward 0", "-forward 0", "+forward 1", "-forward 1"));
}

struct VirtualBase : torch::nn::Module {
  virtual Tensor forward(const Tensor& x) { return x; }
};

TEST(Sharded, OverridesAVirtualForward) {
  const auto block = make_sharded<VirtualBase>();
  Recorder recorder(*block);
  VirtualBase& base = *block;
  base.forward(input());
  EXPECT_THAT(recorder.take(), ElementsAre("+forward ", "-forward "));
}

}  // namespace
}  // namespace stretto::nn
