#include "stretto/parallel/matmul_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"

namespace stretto::parallel {
namespace {

using kernels::MatmulChoice;
using kernels::MatmulLibrary;
using kernels::MatmulRole;
using ::testing::HasSubstr;

constexpr MatmulChoice all_of(MatmulLibrary library) { return {{library, library, library}}; }

bool has_onednn() { return kernels::is_usable(MatmulLibrary::onednn, MatmulRole::forward, at::kFloat); }

// All libraries take the same time: measuring on a busy machine could contradict itself.
std::vector<kernels::MatmulTime> equal_times(const kernels::MatmulShape&) {
  return {{MatmulLibrary::aten, 1}, {MatmulLibrary::onednn, 1}};
}

// Restores the process's products, and collects log lines.
class RunProductsTest : public ::testing::Test {
 protected:
  RunProductsTest() {
    log::set_output([this](std::string_view line) { logged_ += std::string(line) + "\n"; });
  }
  ~RunProductsTest() override {
    log::set_output({});
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) kernels::use_matmul(dtype, {});
  }

  // Chooses on one rank.
  void choose(const MatmulOptions& options, const std::function<void(MatmulLibraries&)>& check,
              int64_t width = 8) {
    comm::run_rank_threads(1, [&](Group& group) {
      MatmulLibraries products(nn::Linear(width, width), options, group);
      check(products);
    });
  }
  static State state_of(nlohmann::json products) {
    State state;
    state.scalars["products"] = std::move(products);
    return state;
  }
  std::vector<std::filesystem::path> cached() const {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) files.push_back(file.path());
    return files;
  }

  TempFolder folder_;
  std::string logged_;
};

TEST_F(RunProductsTest, ALibraryThatIsAskedForIsUsedWhereItIsUsable) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch has no oneDNN";
  choose({.wish = Products::onednn}, [](const MatmulLibraries& products) {
    EXPECT_EQ(products.choice(), all_of(MatmulLibrary::onednn));
    EXPECT_EQ(products.describe(), "onednn (fp32, wish)");
    EXPECT_EQ(kernels::matmul_in_use(at::kFloat), products.choice());
  });
  choose({.wish = Products::onednn, .dtype = at::kDouble}, [](const MatmulLibraries& products) {
    EXPECT_EQ(products.describe(), "aten (fp64, onednn has no fp64 products here)");
  });
  choose({.wish = Products::mkl}, [](const MatmulLibraries& products) {
    EXPECT_EQ(products.describe(), "aten (fp32, mkl has no fp32 products here)");
  });
  choose({.wish = Products::onednn, .reference = true}, [](const MatmulLibraries& products) {
    EXPECT_EQ(products.describe(), "aten (fp32, reference)");
    EXPECT_EQ(kernels::matmul_in_use(at::kFloat), MatmulChoice());
  });
}

TEST_F(RunProductsTest, SmallModelsAreNotMeasured) {
  choose({.cache = folder_.path()}, [](const MatmulLibraries& products) {
    EXPECT_EQ(products.describe(), "aten (fp32, too small to measure)");
  });
  EXPECT_TRUE(cached().empty());
}

TEST_F(RunProductsTest, RanksShareWhatRank0Measured) {
  std::array<MatmulChoice, 2> choices;
  std::array<std::string, 2> texts;
  comm::run_rank_threads(2, [&](Group& group) {
    const MatmulLibraries products(nn::Linear(512, 512), {.cache = folder_.path(), .timer = equal_times},
                                   group);
    choices[static_cast<size_t>(group.rank())] = products.choice();
    texts[static_cast<size_t>(group.rank())] = products.describe();
  });
  EXPECT_EQ(choices[0], choices[1]);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_THAT(texts[0], HasSubstr("fp32, measured in "));
  ASSERT_EQ(cached().size(), 1);
}

TEST_F(RunProductsTest, ContradictoryMeasurementsAreNotCached) {
  const auto options_with = [&](bool agree) {
    return MatmulOptions{
        .cache = folder_.path(), .timer = [agree, calls = 0](const auto&) mutable {
          const double seconds = agree || calls++ % 2 == 0 ? 1 : 0.8;
          return std::vector<kernels::MatmulTime>{{MatmulLibrary::aten, 1}, {MatmulLibrary::onednn, seconds}};
        }};
  };
  const auto has_reason = [](const std::string& reason) {
    return [reason](const MatmulLibraries& products) { EXPECT_THAT(products.describe(), HasSubstr(reason)); };
  };
  choose(options_with(/*agree=*/false), has_reason("ms with contradictory results, so not cached"), 512);
  EXPECT_TRUE(cached().empty());
  choose(options_with(/*agree=*/true), has_reason("ms)"), 512);
  EXPECT_EQ(cached().size(), 1);
  choose(options_with(/*agree=*/false), has_reason("measured before"), 512);
}

TEST_F(RunProductsTest, AProcessThatIsNoRankMeasuresForItself) {
  const MatmulLibraries products(nn::Linear(512, 512), {.cache = folder_.path()});
  EXPECT_THAT(products.describe(), HasSubstr("fp32, measured in "));
  EXPECT_EQ(kernels::matmul_in_use(at::kFloat), products.choice());
}

TEST_F(RunProductsTest, TheMeasurementIsKeptForLaterRuns) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch has no oneDNN";
  const MatmulOptions options = {.cache = folder_.path(), .timer = equal_times};
  choose(
      options, [](const MatmulLibraries&) {}, 512);
  ASSERT_EQ(cached().size(), 1);
  auto stored = nlohmann::json::parse(read_file(cached()[0]));
  stored["choice"] = {{"forward", "aten"}, {"input_gradient", "onednn"}, {"weight_gradient", "aten"}};
  stored["speedup"] = 1.5;
  write_file_atomic(cached()[0], stored.dump());
  choose(
      options,
      [](const MatmulLibraries& products) {
        EXPECT_EQ(products.describe(), "aten, input gradients onednn (fp32, measured before: 1.50x aten)");
      },
      512);
  // Other shapes are measured.
  choose(
      options,
      [](const MatmulLibraries& products) { EXPECT_THAT(products.describe(), HasSubstr("measured in")); },
      640);
  write_file_atomic(cached()[0], "{");
  write_file_atomic(cached()[1], "{\"key\": 1}");
  choose(
      options,
      [](const MatmulLibraries& products) { EXPECT_THAT(products.describe(), HasSubstr("measured in")); },
      512);
}

TEST_F(RunProductsTest, AResumedRunTakesOverTheLibraries) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch has no oneDNN";
  State state;
  choose({.wish = Products::onednn}, [&](const MatmulLibraries& products) { products.add_state(state); });
  choose({}, [&](MatmulLibraries& products) {
    EXPECT_EQ(products.choice(), MatmulChoice());
    products.resume(state);
    EXPECT_EQ(products.describe(), "onednn (fp32, as in the run that is resumed)");
    EXPECT_EQ(kernels::matmul_in_use(at::kFloat), all_of(MatmulLibrary::onednn));
  });
  EXPECT_EQ(logged_, "");
  choose({.wish = Products::aten}, [&](MatmulLibraries& products) {
    products.resume(state);
    EXPECT_EQ(products.describe(), "aten (fp32, wish)");
  });
  EXPECT_THAT(logged_, HasSubstr("forward products were computed by onednn and are by aten from here on, "
                                 "because wish says so: losses may differ"));
}

TEST_F(RunProductsTest, WhatAResumedRunCannotTakeOverIsLogged) {
  State state;
  choose({}, [&](const MatmulLibraries& products) { products.add_state(state); });
  nlohmann::json saved = state.scalars.at("products");
  saved["weight_gradient"] = "cublas";
  saved["processor"] = "Another One";
  choose({}, [&](MatmulLibraries& products) {
    products.resume(state_of(saved));
    EXPECT_EQ(products.choice(), MatmulChoice());
  });
  EXPECT_THAT(logged_, HasSubstr("the checkpoint is of another processor, Another One, and this is "));
  EXPECT_THAT(logged_, HasSubstr("weight_gradient products were computed by cublas and are by aten from here "
                                 "on, because this libtorch has no cublas here"));
  logged_.clear();
  saved = state.scalars.at("products");
  saved["dtype"] = "bf16";
  saved["forward"] = "onednn";
  choose({}, [&](MatmulLibraries& products) { products.resume(state_of(saved)); });
  EXPECT_THAT(logged_, HasSubstr("because they are fp32 here"));
  logged_.clear();
  if (!has_onednn()) return;
  choose({.wish = Products::onednn}, [](MatmulLibraries& products) { products.resume(State()); });
  EXPECT_THAT(logged_,
              HasSubstr("the checkpoint does not record which libraries computed its matrix products"));
}

}  // namespace
}  // namespace stretto::parallel
