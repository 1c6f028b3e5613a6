#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/tensor/tensor_source.h"
#include "stretto/trainer/api/module_fixture.h"

// Parameters of a source: Module::parameters_from().
namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

NamedTensors ones(int64_t width = 2) {
  NamedTensors values;
  for (const char* name : {"first", "second"}) {
    values[std::string(name) + ".weight"] = at::ones({1, width});
    values[std::string(name) + ".bias"] = at::ones({1});
  }
  return values;
}

struct ReadsOnes : Regression {
  ReadsOnes() { parameters_from(std::make_unique<MemorySource>(ones())); }
};
struct HoldsOnes : Regression {
  HoldsOnes() {
    at::NoGradGuard no_grad;
    for (Tensor& parameter : net->parameters()) parameter.fill_(1);
  }
};
struct ReadsWiderOnes : Regression {
  ReadsWiderOnes() { parameters_from(std::make_unique<MemorySource>(ones(3))); }
};
struct ReadsTwice : ReadsOnes {
  ReadsTwice() { parameters_from(std::make_unique<MemorySource>(ones())); }
};
struct ReadsNull : Regression {
  ReadsNull() { parameters_from(nullptr); }
};

TEST_F(ModuleTest, ParametersOfASourceTrainLikeThoseOfTheModule) {
  const auto trained = [&](auto fitting) {
    fitting();
    return read_file(recipe_.output / "model/model.safetensors");
  };
  for (const char* strategy : {"ddp", "fsdp"}) {
    recipe_.training.strategy = strategy;
    recipe_.output = folder_.path() / (std::string(strategy) + "-held");
    const std::string held = trained([&] { fit<HoldsOnes>(2); });
    recipe_.output = folder_.path() / (std::string(strategy) + "-read");
    EXPECT_EQ(trained([&] { fit<ReadsOnes>(2); }), held) << strategy;
  }
}

// An evaluation or a run reads the source; later ones use the weights that result from it.
TEST_F(ModuleTest, ASourceIsReadOnce) {
  const Plane train(40);
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe_, group);
    ReadsOnes module;
    EXPECT_EQ(module.net->named_parameters()["first.weight"].storage().nbytes(), sizeof(float));
    const double before = Trainer(recipe_, mesh, at::kCPU).test(module, train, {.load = false}).at("loss");
    EXPECT_TRUE(module.net->named_parameters()["first.weight"].eq(1).all().item<bool>());
    Trainer(recipe_, mesh, at::kCPU).fit(module, train, nullptr);
    const double after = Trainer(recipe_, mesh, at::kCPU).test(module, train, {.load = false}).at("loss");
    EXPECT_LT(after, before);
    ReadsOnes fitted;
    Trainer(recipe_, mesh, at::kCPU).fit(fitted, train, nullptr);
    EXPECT_EQ(Trainer(recipe_, mesh, at::kCPU).test(fitted, train, {.load = false}).at("loss"), after);
  });
}

TEST_F(ModuleTest, SourcesThatDoNotFitAreRefused) {
  EXPECT_THAT(message_of<DataError>([] { ReadsWiderOnes(); }),
              HasSubstr("the source's first.weight is [1, 3], and the parameter is [1, 2]"));
  EXPECT_THAT(message_of<ConfigError>([] { ReadsTwice(); }), HasSubstr("parameters_from() was called twice"));
  EXPECT_THAT(message_of<ConfigError>([] { ReadsNull(); }), HasSubstr("called with a null pointer"));
}

}  // namespace
}  // namespace stretto::trainer
