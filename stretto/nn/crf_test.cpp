#include "stretto/nn/crf.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::nn {
namespace {

using ::testing::HasSubstr;

struct CrfCase {
  Tensor emissions, bounds, tags;
  CrfScores scores;
};

// Sequences of several lengths, including an empty one, and a row after the last one.
CrfCase crf_case(int64_t k, int seed) {
  at::manual_seed(seed);
  const auto random = [](at::IntArrayRef sizes) {
    return (at::randn(sizes, at::kDouble) * 2).requires_grad_();
  };
  return {random({11, k}),
          at::tensor({0, 4, 5, 5, 10}, at::kLong),
          at::randint(k, {11}, at::kLong),
          {random({k, k}), random({k}), random({k})}};
}

// Calls `visit` with the score of every path of sequence b, computed by ATen on the autograd graph.
void for_each_path(const CrfCase& c, int64_t b,
                   const std::function<void(const std::vector<int64_t>&, const Tensor&)>& visit) {
  const int64_t begin = c.bounds[b].item<int64_t>(), end = c.bounds[b + 1].item<int64_t>(),
                k = c.emissions.size(1);
  std::vector<int64_t> path(static_cast<size_t>(end - begin), 0);
  for (;;) {
    Tensor score = at::zeros({}, at::kDouble);
    for (size_t t = 0; t < path.size(); ++t) {
      score = score + c.emissions[begin + static_cast<int64_t>(t)][path[t]];
      if (t > 0) score = score + c.scores.transitions[path[t - 1]][path[t]];
    }
    if (!path.empty()) score = score + c.scores.start[path.front()] + c.scores.end[path.back()];
    visit(path, score);
    size_t at = 0;
    while (at < path.size() && ++path[at] == k) path[at++] = 0;
    if (at == path.size()) return;
  }
}

TEST(Crf, LossesAndEveryGradientEqualTheSumOverAllPaths) {
  const CrfCase c = crf_case(3, 1);
  const std::vector<Tensor> inputs = {c.emissions, c.scores.transitions, c.scores.start, c.scores.end};
  const Tensor weights = at::tensor({1.0, 0.5, 7.0, -2.0}, at::kDouble);
  std::vector<Tensor> wanted;
  for (int64_t b = 0; b < 4; ++b) {
    std::vector<Tensor> scores;
    Tensor own;
    for_each_path(c, b, [&](const std::vector<int64_t>& path, const Tensor& score) {
      scores.push_back(score);
      bool is_own = true;
      for (size_t t = 0; t < path.size(); ++t)
        is_own &= path[t] == c.tags[c.bounds[b].item<int64_t>() + static_cast<int64_t>(t)].item<int64_t>();
      if (is_own) own = score;
    });
    wanted.push_back(at::logsumexp(at::stack(scores), 0) - own);
  }
  (at::stack(wanted) * weights).sum().backward();
  std::vector<Tensor> wanted_gradients;
  for (const Tensor& input : inputs) {
    wanted_gradients.push_back(input.grad().clone());
    input.mutable_grad() = Tensor();
  }
  const Tensor losses = crf_losses(c.emissions, c.bounds, c.tags, c.scores);
  EXPECT_TRUE(at::allclose(losses, at::stack(wanted), 1e-12, 1e-12)) << losses << at::stack(wanted);
  (losses * weights).sum().backward();
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(at::allclose(inputs[i].grad(), wanted_gradients[i], 1e-10, 1e-12)) << "input " << i;
}

TEST(Crf, BestTagsFormTheBestPath) {
  for (int seed = 1; seed <= 20; ++seed) {
    const CrfCase c = crf_case(3, seed);
    const Tensor found = crf_best_tags(c.emissions, c.bounds, c.scores);
    for (int64_t b = 0; b < 4; ++b) {
      double most = -1e30;
      std::vector<int64_t> best;
      for_each_path(c, b, [&](const std::vector<int64_t>& path, const Tensor& score) {
        if (score.item<double>() <= most) return;
        most = score.item<double>();
        best = path;
      });
      for (size_t t = 0; t < best.size(); ++t) {
        EXPECT_EQ(found[c.bounds[b].item<int64_t>() + static_cast<int64_t>(t)].item<int64_t>(), best[t])
            << "seed " << seed << ", sequence " << b << ", element " << t;
      }
    }
    EXPECT_EQ(found[10].item<int64_t>(), 0) << "after the last sequence";
  }
}

TEST(Crf, MarginalsEqualTheProbabilitiesOfPaths) {
  const CrfCase c = crf_case(3, 4);
  const Tensor wanted = at::zeros({11, 3}, at::kDouble);
  for (int64_t b = 0; b < 4; ++b) {
    double total = 0;
    const Tensor sums = at::zeros({11, 3}, at::kDouble);
    for_each_path(c, b, [&](const std::vector<int64_t>& path, const Tensor& score) {
      const double share = std::exp(score.item<double>());
      total += share;
      for (size_t t = 0; t < path.size(); ++t)
        sums[c.bounds[b].item<int64_t>() + static_cast<int64_t>(t)][path[t]] += share;
    });
    wanted.add_(sums / total);
  }
  EXPECT_TRUE(at::allclose(crf_marginals(c.emissions, c.bounds, c.scores), wanted, 1e-12, 1e-14));
}

// A transition of -inf forbids paths; scores far beyond the range of exp do not overflow.
TEST(Crf, ForbiddenTransitionsAndLargeScores) {
  const CrfCase c = crf_case(3, 5);
  at::NoGradGuard no_grad;
  c.scores.transitions[0][1] = -std::numeric_limits<double>::infinity();
  c.emissions.mul_(1000);
  const Tensor best = crf_best_tags(c.emissions, c.bounds, c.scores);
  for (int64_t b = 0; b < 4; ++b) {
    for (int64_t t = c.bounds[b].item<int64_t>() + 1; t < c.bounds[b + 1].item<int64_t>(); ++t)
      EXPECT_FALSE(best[t - 1].item<int64_t>() == 0 && best[t].item<int64_t>() == 1);
  }
  const Tensor losses = crf_losses(c.emissions, c.bounds, best, c.scores);
  EXPECT_TRUE(at::isfinite(losses).all().item<bool>()) << losses;
  EXPECT_TRUE((losses.ge(-1e-6)).all().item<bool>()) << losses;
  EXPECT_TRUE(at::isfinite(crf_marginals(c.emissions, c.bounds, c.scores)).all().item<bool>());
}

// If exponentials of the scores would overflow or vanish, sums equal those of ATen's logsumexp.
TEST(Crf, LossesOfExtremeScoresAreExact) {
  for (const double scale : {20.0, 100.0, 1000.0}) {
    const CrfCase c = crf_case(3, 7);
    {
      at::NoGradGuard no_grad;
      c.scores.transitions.mul_(scale);
      c.emissions.mul_(scale / 10);
    }
    const Tensor losses = crf_losses(c.emissions, c.bounds, c.tags, c.scores);
    const std::vector<Tensor> inputs = {c.emissions, c.scores.transitions};
    losses.sum().backward();
    std::vector<Tensor> found;
    for (const Tensor& input : inputs) {
      found.push_back(input.grad().clone());
      input.mutable_grad() = Tensor();
    }
    Tensor wanted = at::zeros({}, at::kDouble);
    for (int64_t b = 0; b < 4; ++b) {
      std::vector<Tensor> scores;
      Tensor own;
      for_each_path(c, b, [&](const std::vector<int64_t>& path, const Tensor& score) {
        scores.push_back(score);
        bool is_own = true;
        for (size_t t = 0; t < path.size(); ++t)
          is_own &= path[t] == c.tags[c.bounds[b].item<int64_t>() + static_cast<int64_t>(t)].item<int64_t>();
        if (is_own) own = score;
      });
      wanted = wanted + at::logsumexp(at::stack(scores), 0) - own;
    }
    EXPECT_NEAR(losses.sum().item<double>(), wanted.item<double>(), 1e-10 * std::abs(wanted.item<double>()));
    wanted.backward();
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_TRUE(at::allclose(found[i], inputs[i].grad(), 1e-8, 1e-10))
          << "scale " << scale << ", input " << i;
  }
}

TEST(Crf, RefusesTagsAndShapesThatDoNotFit) {
  const CrfCase c = crf_case(3, 6);
  const Tensor wrong = c.tags.clone();
  wrong[2] = -100;
  EXPECT_THAT(message_of<DataError>([&] { crf_losses(c.emissions, c.bounds, wrong, c.scores); }),
              HasSubstr("row 2 has the tag -100; expected 0 to 2"));
  EXPECT_THAT(
      message_of<ShapeError>([&] { crf_losses(c.emissions, c.bounds, c.tags.slice(0, 1), c.scores); }),
      HasSubstr("do not match"));
  EXPECT_THAT(message_of<ShapeError>([&] { crf_best_tags(c.emissions.slice(1, 1), c.bounds, c.scores); }),
              HasSubstr("do not match"));
  EXPECT_THAT(message_of<ShapeError>([&] {
                crf_best_tags(c.emissions, at::tensor({0, 12}, at::kLong), c.scores);
              }),
              HasSubstr("sequence 0 is rows 0 to 12 of 11"));
}

}  // namespace
}  // namespace stretto::nn
