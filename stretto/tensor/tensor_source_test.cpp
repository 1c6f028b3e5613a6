#include "stretto/tensor/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/tensor_layout.h"
#include "stretto/tensor/hf_folder.h"
#include "stretto/tensor/region_fixture.h"

namespace stretto {
namespace {

TEST(MemorySource, PartsOfFilesEqualThoseOfTheWhole) {
  const std::filesystem::path golden = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";
  std::mt19937 random(1);
  int64_t parts = 0;
  for (const char* folder : {"bert/sharded", "bert/old_names", "pickled/small", "pickled/sharded"}) {
    const NamedTensors weights = load_hf_weights(golden / folder);
    const MemorySource source(weights);
    for (const auto& [name, tensor] : weights) {
      if (tensor.numel() == 0) continue;
      for (int i = 0; i < 4; ++i, ++parts) {
        const Region region = random_region(tensor.sizes(), random);
        const Tensor values = at::empty({region.elements()}, at::kDouble);
        source.read(name, region, values);
        EXPECT_TRUE(values.equal(part_of(tensor, region).to(at::kDouble))) << folder << " " << name;
      }
    }
  }
  EXPECT_GT(parts, 200);
}

// Neither the strides of the tensor nor those of the filled memory matter.
TEST(MemorySource, ReadsAnyStridesIntoAnyStrides) {
  std::mt19937 random(2);
  const Tensor base = at::arange(7 * 5 * 6, at::kFloat).view({7, 5, 6});
  for (const Tensor& tensor : {base, base.permute({2, 0, 1}), base.permute({1, 2, 0}).slice(1, 1, 6, 2)}) {
    const MemorySource source({{"x", tensor}});
    for (int i = 0; i < 200; ++i) {
      const Region region = random_region(tensor.sizes(), random);
      const Tensor spaced = at::empty({region.elements(), 3});
      source.read("x", region, spaced.select(1, 1));
      EXPECT_TRUE(spaced.select(1, 1).equal(part_of(tensor, region)));
    }
  }
}

TEST(JoinedSources, TheFirstSourceWithATensorProvidesIt) {
  const JoinedSources source(
      std::make_unique<MemorySource>(NamedTensors{{"a", at::ones({2})}}),
      std::make_unique<MemorySource>(NamedTensors{{"a", at::zeros({2})}, {"b", at::full({2}, 3)}}));
  const auto values_of = [&](const std::string& name) {
    Tensor values = at::empty({2});
    source.read(name, whole_region({2}), values);
    return values;
  };
  EXPECT_TRUE(values_of("a").equal(at::ones({2})));
  EXPECT_TRUE(values_of("b").equal(at::full({2}, 3.0F)));
  EXPECT_TRUE(source.has("b"));
  EXPECT_FALSE(source.has("c"));
}

// The parts that the positions read form the whole tensor.
TEST(ReadElements, ReadsTheIntervalsOfACutTensor) {
  const Tensor whole = at::arange(12 * 10, at::kFloat).view({12, 10});
  const MemorySource source({{"x", whole}});
  for (const int axis : {0, 1}) {
    const TensorLayout layout = {.global = {12, 10},
                                 .cuts = {{.axis = axis, .intervals = {{1, 3}, {5, 9}}, .largest = 6}}};
    const Tensor expected =
        at::cat({whole.slice(axis, 1, 3), whole.slice(axis, 5, 9)}, axis).contiguous().view({-1});
    const int64_t elements = expected.numel();
    for (int64_t begin = 0; begin < elements; begin += 3) {
      for (int64_t end = begin; end <= elements; end += 7) {
        const Tensor values = at::empty({end - begin});
        read_elements(source, "x", layout, {begin, end}, values);
        EXPECT_TRUE(values.equal(expected.slice(0, begin, end))) << axis << " " << begin << " " << end;
      }
    }
  }
}

}  // namespace
}  // namespace stretto
