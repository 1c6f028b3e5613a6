#include "stretto/nn/initial_values.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {
namespace {

using ::testing::HasSubstr;

// A linear layer on one of several ranks that has every position'th row of three joined tensors, or some of
// its columns.
struct CutLinear : torch::nn::Module, HasLayout {
  CutLinear(int position, int positions, int cut_axis) {
    const int64_t width = 24 / positions, first = position * width;
    if (cut_axis == 0) {
      cut = {.axis = 0,
             .intervals = {{first, first + width},
                           {24 + first, 24 + first + width},
                           {48 + first, 48 + first + width}},
             .largest = 3 * width};
      weight = register_parameter("weight", at::zeros({3 * width, 24}));
      bias = register_parameter("bias", at::zeros({3 * width}));
    } else {
      cut = {.axis = 1, .intervals = {{first, first + width}}, .largest = width};
      weight = register_parameter("weight", at::zeros({72, width}));
      bias = register_parameter("bias", at::zeros({72}));
    }
  }
  TensorLayout layout(const std::string& parameter) const override {
    if (parameter == "weight") return {{72, 24}, {cut}};
    return cut.axis == 0 ? TensorLayout{{72}, {cut}} : TensorLayout{{72}};
  }
  Cut cut;
  Tensor weight, bias;
};

struct CutNet : torch::nn::Module {
  CutNet(int position, int positions) {
    register_module("rows", std::make_shared<CutLinear>(position, positions, 0));
    register_module("columns", std::make_shared<CutLinear>(position, positions, 1));
  }
};

// Joins the parameters of all positions.
std::map<std::string, Tensor> together(int positions, const InitialValue& value) {
  InitialValues source(7);
  const CutNet whole_net(0, 1);
  for (const LayerParameter& parameter : layer_parameters(whole_net))
    source.add(parameter.name, parameter.layout().global, value);
  std::map<std::string, Tensor> whole;
  for (int position = 0; position < positions; ++position) {
    CutNet net(position, positions);
    fill_parameters(net, source);
    for (const LayerParameter& parameter : layer_parameters(net)) {
      const TensorLayout layout = parameter.layout();
      Tensor& values = whole[parameter.name];
      if (!values.defined()) values = at::full({count_elements(layout.global)}, NAN);
      for (const LocalRun& run : layout.runs()) {
        values.slice(0, run.global, run.global + run.elements)
            .copy_(parameter.tensor.detach().view({-1}).slice(0, run.local, run.local + run.elements));
      }
    }
  }
  return whole;
}

constexpr auto normal = InitialValue::Kind::normal;
constexpr auto uniform = InitialValue::Kind::uniform;

// All values of a tensor.
Tensor drawn(const InitialValue& value, const std::vector<int64_t>& shape, at::ScalarType type = at::kFloat) {
  InitialValues source(1);
  source.add("w", shape, value);
  Tensor values = at::empty(shape, type);
  source.read("w", whole_region(shape), values);
  return values;
}

TEST(InitialValues, AreEqualOnAnyMesh) {
  for (const InitialValue& value : {InitialValue{normal, 0.02}, InitialValue{uniform, 0.5}}) {
    const auto alone = together(1, value);
    EXPECT_EQ(alone.size(), 4u);
    EXPECT_FALSE(alone.at("rows.weight").equal(alone.at("columns.weight"))) << "names differ";
    for (const int positions : {2, 4}) {
      for (const auto& [name, values] : together(positions, value))
        EXPECT_TRUE(values.equal(alone.at(name))) << positions << " " << name;
    }
  }
}

// The ranges of torch's threads may begin at any element, not only at multiples of four.
TEST(InitialValues, AreEqualInAnyPrecisionAndByAnyNumberOfThreads) {
  const Tensor expected = drawn({normal, 0.02}, {333, 1001});
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  EXPECT_TRUE(drawn({normal, 0.02}, {333, 1001}).equal(expected));
  at::set_num_threads(before);
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16})
    EXPECT_TRUE(drawn({normal, 0.02}, {333, 1001}, type).equal(expected.to(type)));
}

TEST(InitialValues, FollowTheirDistribution) {
  const Tensor values = drawn({normal, 2}, {1000, 1000});
  EXPECT_NEAR(values.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(values.std().item<double>(), 2, 0.01);
  EXPECT_NEAR((values.abs() < 2).to(at::kDouble).mean().item<double>(), 0.6827, 0.002);
  EXPECT_NEAR((values.abs() < 4).to(at::kDouble).mean().item<double>(), 0.9545, 0.001);
  EXPECT_NEAR((values.slice(1, 0, 999) * values.slice(1, 1, 1000)).mean().item<double>(), 0, 0.02)
      << "neighbours are independent";
  const Tensor even = drawn({uniform, 0.5}, {1000, 1000});
  EXPECT_NEAR(even.mean().item<double>(), 0, 0.002);
  EXPECT_NEAR(even.std().item<double>(), 1 / std::sqrt(12.0), 0.001);
  EXPECT_GE(even.min().item<double>(), -0.5);
  EXPECT_LT(even.max().item<double>(), 0.5);
}

TEST(InitialValues, ARowIsZeroedOnItsRank) {
  for (const int positions : {1, 2}) {
    const auto whole = together(positions, {.kind = InitialValue::Kind::constant, .scale = 1, .zero_row = 1});
    EXPECT_EQ(whole.at("rows.weight").sum().item<double>(), 71 * 24);
    EXPECT_EQ(whole.at("columns.weight").slice(0, 24, 48).abs().max().item<double>(), 0);
  }
}

TEST(HasLayout, MustFitTheParameter) {
  CutLinear layer(0, 2, 0);
  const LayerParameter weight = layer_parameters(layer).front();
  EXPECT_EQ(weight.layout().local(), (std::vector<int64_t>{36, 24}));
  layer.cut.intervals.pop_back();
  EXPECT_THAT(message_of<ConfigError>([&] { weight.layout(); }),
              HasSubstr("is [36, 24], but its layout says [24, 24]"));
  layer.cut.axis = 3;
  EXPECT_THAT(message_of<ConfigError>([&] { weight.layout(); }),
              HasSubstr("a tensor of 2 axes is cut along axis 3"));
}

}  // namespace
}  // namespace stretto::nn
