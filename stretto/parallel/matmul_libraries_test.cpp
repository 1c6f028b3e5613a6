#include "stretto/parallel/matmul_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/base/message_support.h"
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

// Reports equal times for all libraries: real measurements on a busy machine could contradict each other.
std::vector<kernels::MatmulTime> equal_times(const kernels::MatmulShape&) {
  return {{MatmulLibrary::aten, 1}, {MatmulLibrary::onednn, 1}};
}

// Restores the process's matmul libraries, and collects log lines.
class RunMatmulsTest : public ::testing::Test {
 protected:
  RunMatmulsTest() {
    log::set_output([this](std::string_view line) { logged_ += std::string(line) + "\n"; });
  }
  ~RunMatmulsTest() override {
    log::set_output({});
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) kernels::use_matmul(dtype, {});
  }

  // Chooses on one rank.
  void choose(const MatmulOptions& options, const std::function<void(MatmulLibraries&)>& check,
              int64_t width = 8) {
    comm::run_rank_threads(1, [&](Group& group) {
      MatmulLibraries libraries(nn::Linear(width, width), options, group);
      check(libraries);
    });
  }
  static State state_of(nlohmann::json libraries) {
    State state;
    state.scalars["products"] = std::move(libraries);
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

TEST_F(RunMatmulsTest, ARequestedLibraryIsUsedIfItIsUsable) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch has no oneDNN";
  choose({.requested = Products::onednn}, [](const MatmulLibraries& libraries) {
    EXPECT_EQ(libraries.choice(), all_of(MatmulLibrary::onednn));
    EXPECT_EQ(libraries.describe(), "onednn (fp32, requested)");
    EXPECT_EQ(kernels::matmul_in_use(at::kFloat), libraries.choice());
  });
  choose({.requested = Products::onednn, .dtype = at::kDouble}, [](const MatmulLibraries& libraries) {
    EXPECT_EQ(libraries.describe(), "aten (fp64, onednn does not support fp64 matmuls here)");
  });
  choose({.requested = Products::mkl}, [](const MatmulLibraries& libraries) {
    EXPECT_EQ(libraries.describe(), "aten (fp32, mkl does not support fp32 matmuls here)");
  });
  choose({.requested = Products::onednn, .reference = true}, [](const MatmulLibraries& libraries) {
    EXPECT_EQ(libraries.describe(), "aten (fp32, reference)");
    EXPECT_EQ(kernels::matmul_in_use(at::kFloat), MatmulChoice());
  });
}

TEST_F(RunMatmulsTest, SmallModelsAreNotMeasured) {
  choose({.cache = folder_.path()}, [](const MatmulLibraries& libraries) {
    EXPECT_EQ(libraries.describe(), "aten (fp32, too small to measure)");
  });
  EXPECT_TRUE(cached().empty());
}

TEST_F(RunMatmulsTest, RanksShareWhatRank0Measured) {
  std::array<MatmulChoice, 2> choices;
  std::array<std::string, 2> texts;
  comm::run_rank_threads(2, [&](Group& group) {
    const MatmulLibraries libraries(nn::Linear(512, 512), {.cache = folder_.path(), .timer = equal_times},
                                    group);
    choices[static_cast<size_t>(group.rank())] = libraries.choice();
    texts[static_cast<size_t>(group.rank())] = libraries.describe();
  });
  EXPECT_EQ(choices[0], choices[1]);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_THAT(texts[0], HasSubstr("fp32, measured in "));
  ASSERT_EQ(cached().size(), 1);
}

TEST_F(RunMatmulsTest, ContradictoryMeasurementsAreNotCached) {
  const auto options_with = [&](bool agree) {
    return MatmulOptions{
        .cache = folder_.path(), .timer = [agree, calls = 0](const auto&) mutable {
          const double seconds = agree || calls++ % 2 == 0 ? 1 : 0.8;
          return std::vector<kernels::MatmulTime>{{MatmulLibrary::aten, 1}, {MatmulLibrary::onednn, seconds}};
        }};
  };
  const auto has_reason = [](const std::string& reason) {
    return
        [reason](const MatmulLibraries& libraries) { EXPECT_THAT(libraries.describe(), HasSubstr(reason)); };
  };
  choose(options_with(/*agree=*/false), has_reason("ms with contradictory results, so not cached"), 512);
  EXPECT_TRUE(cached().empty());
  choose(options_with(/*agree=*/true), has_reason("ms)"), 512);
  EXPECT_EQ(cached().size(), 1);
  choose(options_with(/*agree=*/false), has_reason("measured before"), 512);
}

// A later process computes few rows by the kernel as the first one, whatever it would measure.
TEST_F(RunMatmulsTest, TheKernelForFewRowsIsChosenOnce) {
  const auto options_with = [&](std::vector<double> kernel_seconds) {
    return MatmulOptions{.cache = folder_.path(),
                         .few_rows = true,
                         .timer = equal_times,
                         .few_rows_timer = [kernel_seconds, round = size_t{0}](int64_t) mutable {
                           return kernels::FewRowsTimes{
                               .library = 2, .vectors = kernel_seconds[round++ % kernel_seconds.size()]};
                         }};
  };
  const auto rows_in_use = [](int64_t rows) {
    return [rows](const MatmulLibraries&) { EXPECT_EQ(kernels::few_rows_in_use(at::kFloat), rows); };
  };
  choose(options_with({1, 3}), rows_in_use(8), 512);
  EXPECT_EQ(cached().size(), 1) << "contradictory measurements are not cached";
  choose(options_with({3}), rows_in_use(0), 512);
  EXPECT_EQ(cached().size(), 2);
  choose(options_with({1}), rows_in_use(0), 512);
  kernels::use_few_rows(at::kFloat, 0);
}

TEST_F(RunMatmulsTest, AProcessThatIsNotARankMeasuresForItself) {
  const MatmulLibraries libraries(nn::Linear(512, 512), {.cache = folder_.path()});
  EXPECT_THAT(libraries.describe(), HasSubstr("fp32, measured in "));
  EXPECT_EQ(kernels::matmul_in_use(at::kFloat), libraries.choice());
}

TEST_F(RunMatmulsTest, TheMeasurementIsCachedForLaterRuns) {
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
      [](const MatmulLibraries& libraries) {
        EXPECT_EQ(libraries.describe(), "aten, input gradients onednn (fp32, measured before: 1.50x aten)");
      },
      512);
  // A file of other kernels is not used.
  for (const char* version : {"stretto", "kernels"}) {
    auto earlier = stored;
    earlier.at("key").at(version) = "earlier";
    write_file_atomic(cached()[0], earlier.dump());
    choose(
        options,
        [&](const MatmulLibraries& libraries) {
          EXPECT_THAT(libraries.describe(), HasSubstr("measured in")) << version;
        },
        512);
  }
  ASSERT_EQ(cached().size(), 1);
  // Other shapes are measured, too.
  choose(
      options,
      [](const MatmulLibraries& libraries) { EXPECT_THAT(libraries.describe(), HasSubstr("measured in")); },
      640);
  write_file_atomic(cached()[0], "{");
  write_file_atomic(cached()[1], "{\"key\": 1}");
  choose(
      options,
      [](const MatmulLibraries& libraries) { EXPECT_THAT(libraries.describe(), HasSubstr("measured in")); },
      512);
}

TEST_F(RunMatmulsTest, AResumedRunUsesTheSameLibraries) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch has no oneDNN";
  State state;
  choose({.requested = Products::onednn},
         [&](const MatmulLibraries& libraries) { libraries.add_state(state); });
  choose({}, [&](MatmulLibraries& libraries) {
    EXPECT_EQ(libraries.choice(), MatmulChoice());
    libraries.resume(state);
    EXPECT_EQ(libraries.describe(), "onednn (fp32, as in the run that is resumed)");
    EXPECT_EQ(kernels::matmul_in_use(at::kFloat), all_of(MatmulLibrary::onednn));
  });
  EXPECT_EQ(logged_, "");
  choose({.requested = Products::aten}, [&](MatmulLibraries& libraries) {
    libraries.resume(state);
    EXPECT_EQ(libraries.describe(), "aten (fp32, requested)");
  });
  EXPECT_THAT(logged_, has_all("forward matmuls ", "by onednn", "now computed by aten",
                               "because requested requests it"));
}

TEST_F(RunMatmulsTest, LibrariesThatAResumedRunCannotUseAreLogged) {
  State state;
  choose({}, [&](const MatmulLibraries& libraries) { libraries.add_state(state); });
  nlohmann::json saved = state.scalars.at("products");
  saved["weight_gradient"] = "cublas";
  saved["processor"] = "Another One";
  choose({}, [&](MatmulLibraries& libraries) {
    libraries.resume(state_of(saved));
    EXPECT_EQ(libraries.choice(), MatmulChoice());
  });
  EXPECT_THAT(logged_, HasSubstr("the checkpoint is of another processor, Another One, and this is "));
  EXPECT_THAT(logged_, has_all("weight_gradient matmuls ", "by cublas", "now computed by aten",
                               "libtorch has no cublas"));
  logged_.clear();
  saved = state.scalars.at("products");
  saved["dtype"] = "bf16";
  saved["forward"] = "onednn";
  choose({}, [&](MatmulLibraries& libraries) { libraries.resume(state_of(saved)); });
  EXPECT_THAT(logged_, HasSubstr("because they are fp32 here"));
  logged_.clear();
  if (!has_onednn()) return;
  choose({.requested = Products::onednn}, [](MatmulLibraries& libraries) { libraries.resume(State()); });
  EXPECT_THAT(logged_, has_all("checkpoint does not record", "computed its matmuls"));
}

}  // namespace
}  // namespace stretto::parallel
