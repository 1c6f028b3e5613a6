#include "stretto/nn/layer_kinds.h"

#include <gtest/gtest.h>

#include <torch/nn/modules/linear.h>

#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"

namespace stretto::nn {
namespace {

TEST(LayerKinds, ALayerOfAnotherLibraryIsFound) {
  struct Root : torch::nn::Module {
  } root;
  EXPECT_EQ(layer_kinds(root).own + layer_kinds(root).other, "") << "no parameters";
  add_layer(root, "layers.0", make_sharded<Linear>(2, 2));
  root.register_module("norm", std::make_shared<LayerNorm>(2, 1e-5));
  EXPECT_EQ(layer_kinds(root).other, "");
  EXPECT_EQ(layer_kinds(root).own, "norm");
  add_layer(root, "layers.1", torch::nn::Linear(2, 2).ptr());
  EXPECT_EQ(layer_kinds(root).other, "layers.1");
}

TEST(LayerKinds, ParametersOfTheModuleItself) {
  Linear own(2, 2);
  EXPECT_EQ(layer_kinds(own).other, "");
  own.register_parameter("scale", at::ones({1}));
  EXPECT_EQ(layer_kinds(own).other, "");
  torch::nn::LinearImpl other(2, 2);
  EXPECT_EQ(layer_kinds(other).other, "the module itself");
}

}  // namespace
}  // namespace stretto::nn
