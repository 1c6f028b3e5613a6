#include "stretto/kernels/matmul/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto::kernels {
namespace {

using enum MatmulLibrary;

constexpr MatmulChoice all_of(MatmulLibrary library) { return {{library, library, library}}; }

// Returns times from `seconds`, which is called with the shape and the number of the round, from 0 on.
class Timer {
 public:
  using Seconds = std::function<std::vector<MatmulTime>(const MatmulShape&, int)>;
  explicit Timer(Seconds seconds) : seconds_(std::move(seconds)) {}

  MeasuredChoice choose(const std::vector<LinearMaps>& maps = {{8, 8, 1}}) {
    return choose_by_time(maps, at::kFloat, 256, [&](const MatmulShape& shape) {
      shapes_.push_back(shape);
      const auto call = static_cast<int>(shapes_.size()) - 1;
      return seconds_(shape, call / static_cast<int>(maps.size() * all_matmul_roles.size()));
    });
  }
  size_t rounds() const { return shapes_.size() / all_matmul_roles.size(); }
  const std::vector<MatmulShape>& shapes() const { return shapes_; }

 private:
  Seconds seconds_;
  std::vector<MatmulShape> shapes_;
};

TEST(MatmulChoice, ThreeEqualRoundsAreEnough) {
  Timer timer([](const MatmulShape&, int) { return std::vector<MatmulTime>{{aten, 2}, {onednn, 1}}; });
  const MeasuredChoice measured = timer.choose();
  EXPECT_EQ(measured.choice, all_of(onednn));
  EXPECT_DOUBLE_EQ(measured.speedup, 2);
  EXPECT_TRUE(measured.is_certain);
  EXPECT_EQ(timer.rounds(), 3);
}

TEST(MatmulChoice, ADisturbedRoundIsRepeated) {
  for (const bool first : {true, false}) {
    Timer timer([&](const MatmulShape& shape, int round) {
      const bool disturbed = round == (first ? 0 : 1) && shape.role == MatmulRole::forward;
      return std::vector<MatmulTime>{{aten, 2}, {onednn, disturbed ? 10.0 : 1.0}};
    });
    const MeasuredChoice measured = timer.choose();
    EXPECT_EQ(measured.choice, all_of(onednn));
    EXPECT_DOUBLE_EQ(measured.speedup, 2) << "of the shortest times";
    EXPECT_TRUE(measured.is_certain);
    EXPECT_EQ(timer.rounds(), first ? 4 : 5);
  }
}

// The measurements of all libraries are disturbed, including the default.
TEST(MatmulChoice, WithoutAgreementTheShortestTimesDecide) {
  Timer timer([](const MatmulShape& shape, int round) {
    const bool forward = shape.role == MatmulRole::forward;
    const double noise = round % 2 == 0 ? 1 : 4;
    return std::vector<MatmulTime>{{aten, 2 * (forward ? noise : 1)},
                                   {onednn, (forward ? 1.96 : 1.0) * (forward ? 1 : noise)}};
  });
  const MeasuredChoice measured = timer.choose();
  EXPECT_EQ(measured.choice, (MatmulChoice{{aten, onednn, onednn}}));
  EXPECT_DOUBLE_EQ(measured.speedup, 6.0 / 4);
  EXPECT_FALSE(measured.is_certain);
  EXPECT_EQ(timer.rounds(), 8);
}

TEST(MatmulChoice, AtenIsUsedUnlessAnotherIsClearlyFaster) {
  Timer timer([](const MatmulShape& shape, int) {
    if (shape.role == MatmulRole::weight_gradient)
      return std::vector<MatmulTime>{{aten, 100}, {onednn, 90}, {mkl, 80}};
    return std::vector<MatmulTime>{{aten, 100}, {onednn, shape.role == MatmulRole::forward ? 98.0 : 96.0}};
  });
  const MeasuredChoice measured = timer.choose();
  EXPECT_EQ(measured.choice, (MatmulChoice{{aten, onednn, mkl}}));
  EXPECT_TRUE(measured.is_certain);
}

TEST(MatmulChoice, OwnMatmulIsPreferredIfUsable) {
  Timer timer([](const MatmulShape& shape, int) {
    const double other = shape.role == MatmulRole::forward ? 96 : 98;
    return std::vector<MatmulTime>{{aten, 99}, {onednn, other}, {own, 100}};
  });
  EXPECT_EQ(timer.choose().choice, (MatmulChoice{{onednn, own, own}}));
}

TEST(MatmulChoice, MapsAreWeightedByTheirCount) {
  Timer timer([](const MatmulShape& shape, int) {
    return std::vector<MatmulTime>{{aten, 3}, {onednn, shape.in == 8 ? 1.0 : 7.0}};
  });
  EXPECT_EQ(timer.choose({{4, 8, 1}, {4, 2, 1}}).choice, all_of(aten));
  EXPECT_EQ(timer.choose({{4, 8, 4}, {4, 2, 1}}).choice, all_of(onednn));
}

TEST(MatmulChoice, LargeMatmulsAreTimedWithFewerRows) {
  Timer timer([](const MatmulShape&, int) { return std::vector<MatmulTime>{{aten, 1}}; });
  timer.choose({{512, 512, 1}, {8, 8, 1}});
  EXPECT_EQ(timer.shapes()[0].rows, 228);
  EXPECT_EQ(timer.shapes()[1].rows, 256);
  EXPECT_LE(timer.shapes()[0].operations(), 1.2e8);
}

TEST(MatmulChoice, LargeStepsAreTimedWithMoreRows) {
  Timer timer([](const MatmulShape&, int) { return std::vector<MatmulTime>{{aten, 1}}; });
  timer.choose({{512, 512, 1}, {2048, 2048, 24}, {100'000, 1000, 1}});
  EXPECT_EQ(timer.shapes()[0].rows, 256);
  EXPECT_EQ(timer.shapes()[1].rows, 91) << "7.7e8 operations, a 400th of those of the step";
  EXPECT_EQ(timer.shapes()[2].rows, 16) << "at least";
}

TEST(MatmulChoice, MatmulsAreTimedByDefault) {
  const MeasuredChoice measured = choose_by_time({{7, 5, 1}}, at::kFloat, 16);
  EXPECT_GT(measured.speedup, 0.5);
  for (const MatmulRole role : all_matmul_roles)
    EXPECT_TRUE(is_usable(measured.choice[role], role, at::kFloat));
}

TEST(MatmulChoice, TheKernelForFewRowsIsUsedUpToTheRowsWithWhichItIsAsFast) {
  const LinearMaps map = {.out = 96, .in = 64};
  const auto most_rows = [&](int64_t fast_up_to) {
    const FewRowsChoice choice = most_rows_for_kernel(map, at::kFloat, aten, [=](int64_t rows) {
      return FewRowsTimes{.library = 2, .vectors = rows <= fast_up_to ? 2.0 : 3.0};
    });
    EXPECT_TRUE(choice.is_certain);
    return choice.rows;
  };
  EXPECT_EQ(most_rows(8), 8);
  EXPECT_EQ(most_rows(7), 4);
  EXPECT_EQ(most_rows(2), 2);
  EXPECT_EQ(most_rows(1), 1);
  EXPECT_EQ(most_rows(0), 0);
}

TEST(MatmulChoice, TilesMultiplyFewRowsIfTheyAreClearlyFasterThanVectors) {
  const auto choose = [](double library, double vectors, double tiles) {
    return most_rows_for_kernel({.out = 96, .in = 64}, at::kBFloat16, aten, [=](int64_t) {
      return FewRowsTimes{.library = library, .vectors = vectors, .tiles = tiles};
    });
  };
  EXPECT_EQ(choose(3, 2, 1).kernel, FewRowsKernel::tiles);
  EXPECT_EQ(choose(3, 2, 1.95).kernel, FewRowsKernel::vectors) << "the difference is noise";
  EXPECT_EQ(choose(1.5, 2, 1).rows, 8) << "vectors are slower than the library, tiles are not";
  EXPECT_EQ(choose(0.5, 2, 1).rows, 0);
}

// A measurement that another process disturbs is repeated; without agreement the shortest times decide.
TEST(MatmulChoice, TheKernelForFewRowsIsTimedAgainIfMeasurementsDisagree) {
  const auto choose = [](const std::vector<double>& kernel_seconds) {
    size_t round = 0;
    const FewRowsChoice choice = most_rows_for_kernel({.out = 96, .in = 64}, at::kFloat, aten, [&](int64_t) {
      return FewRowsTimes{.library = 2, .vectors = kernel_seconds.at(round++)};
    });
    EXPECT_EQ(round, kernel_seconds.size());
    return choice;
  };
  const FewRowsChoice once = choose({3, 1, 1, 1});
  EXPECT_EQ(once.rows, 8);
  EXPECT_TRUE(once.is_certain);
  const FewRowsChoice never = choose({3, 1, 3, 1, 3, 1, 3, 1});
  EXPECT_EQ(never.rows, 8) << "the shortest time is 1";
  EXPECT_FALSE(never.is_certain);
}

TEST(MatmulChoice, TheKernelForFewRowsIsTimedInBothOrientations) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool transposed : {false, true}) {
      const LinearMaps map = {.out = 96, .in = 64, .transposed = transposed};
      const int64_t rows = most_rows_for_kernel(map, dtype, aten).rows;
      EXPECT_THAT((std::vector<int64_t>{0, 1, 2, 4, 8}), testing::Contains(rows));
    }
  }
}

}  // namespace
}  // namespace stretto::kernels
