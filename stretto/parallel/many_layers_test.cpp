// The work for a model grows linearly with the number of its layers. It is measured by counting allocations,
// since a list of the children of a module is a copy with a name per child.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "stretto/nn/initial_values.h"
#include "stretto/nn/parameter_values.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/parallel/parameters.h"

namespace {

std::atomic<int64_t> allocations = 0;

void* counted(size_t bytes) {
  ++allocations;
  return std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc)
}

}  // namespace

void* operator new(size_t bytes) {
  if (void* const memory = counted(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }          // NOLINT
void operator delete(void* memory, size_t) noexcept { std::free(memory); }  // NOLINT

namespace stretto::parallel {
namespace {

struct ManyLayers : torch::nn::Module {
  explicit ManyLayers(int layers) {
    for (int i = 0; i < layers; ++i) {
      const std::string path = "stack.layers." + std::to_string(i);
      nn::add_layer(*this, path + ".norm", std::make_shared<nn::LayerNorm>(2, 1e-5));
      nn::add_layer(*this, path + ".mlp.up", std::make_shared<nn::ColumnLinear>(2, 2, nn::TensorParallel{}));
      nn::add_layer(*this, path + ".mlp.down", std::make_shared<nn::RowLinear>(2, 2, nn::TensorParallel{}));
    }
  }
};

// The allocations to create a model of so many layers, to draw its initial values, and to collect its
// tensors.
int64_t allocations_for(int layers) {
  const int64_t before = allocations;
  ManyLayers net(layers);
  const auto values = nn::initial_values(net, 1);
  nn::drop_values(net, *values, at::kCPU);
  nn::fill_parameters(net, *values);
  const ModuleTensors tensors = collect_tensors(net);
  const int64_t counted = allocations - before;
  EXPECT_EQ(tensors.trainable.size(), static_cast<size_t>(6 * layers));
  EXPECT_EQ(tensors.trainable.back().name, "stack.layers." + std::to_string(layers - 1) + ".mlp.down.bias");
  EXPECT_TRUE(tensors.trainable[0].tensor.eq(1).all().item<bool>()) << "the weight of a norm";
  return counted;
}

TEST(ManyLayers, TakeLinearWork) {
  allocations_for(1);  // libtorch allocates its tables
  const int64_t of_300 = allocations_for(300), of_3000 = allocations_for(3000);
  RecordProperty("allocations_per_layer", static_cast<int>(of_3000 / 3000));
  EXPECT_LT(of_3000, 11 * of_300) << "300 layers took " << of_300;
}

TEST(ManyLayers, ParametersAreListedLikeLibtorchs) {
  const auto shared = std::make_shared<nn::Linear>(2, 2);
  ManyLayers net(12);
  net.register_module("first", shared);
  net.register_module("again", shared);
  const auto expected = net.named_parameters();
  const auto found = nn::layer_parameters(net);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, expected[i].key());
    EXPECT_TRUE(found[i].tensor.is_same(expected[i].value()));
    EXPECT_TRUE(found[i].name.ends_with("." + found[i].own_name));
  }
}

}  // namespace
}  // namespace stretto::parallel
