#include "stretto/trainer/api/metric.h"

#include <cmath>

#include "stretto/base/message_support.h"
#include "stretto/metrics/ranking.h"
#include "stretto/trainer/api/standard_metrics.h"
#include "stretto/trainer/run/loop_fixture.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

// Sample i has class i % 3 and is predicted as a function of i alone; every fifth label is ignored.
int64_t gold_of(int64_t sample) { return sample % 5 == 4 ? -100 : sample % 3; }
int64_t predicted_of(int64_t sample) { return sample * 7 % 11 % 3; }

// Scores [N, 3] of the classes and, of two sets to which samples belong or not, scores and memberships [N,
// 2].
Tensor class_scores_of(const Tensor& index) {
  return at::stack({index.remainder(4), (index * 5).remainder(7), (index * 3).remainder(8)}, 1);
}
Tensor set_scores_of(const Tensor& index) {
  return at::stack({index.remainder(5), (index * 2).remainder(9)}, 1);
}
Tensor sets_of(const Tensor& index) {
  return at::stack({index.remainder(2), index.gt(6).to(at::kDouble)}, 1);
}

std::span<const double> span_of(const Tensor& values) {
  return {values.const_data_ptr<double>(), static_cast<size_t>(values.numel())};
}

struct Measured : trainer::Line {
  Measured() {
    const auto rmse = [](const Tensor& sum) -> Metrics {
      return {{"rmse", std::sqrt((sum[0] / sum[1]).item<double>())}};
    };
    classes = metric(std::make_shared<ClassMetric>(
        3, std::vector<std::string>{"accuracy", "precision_macro", "recall_macro", "f1_macro", "f1_micro",
                                    "matthews_correlation"}));
    mean = metric(std::make_shared<MeanMetric>("mean_index"));
    perplexity = metric(std::make_shared<PerplexityMetric>());
    auroc = metric(std::make_shared<AurocMetric>());
    precision = metric(std::make_shared<AveragePrecisionMetric>(3, "weighted"));
    of_classes = metric(std::make_shared<AurocMetric>(3, "macro", "auroc_of_classes"));
    of_sets = metric(std::make_shared<AurocMetric>(2, "micro", "auroc_of_sets"));
    error = metric(std::make_shared<SumMetric>(std::vector<int64_t>{2}, rmse));
    largest = metric(std::make_shared<RowMetric>(1, [](const Tensor& rows) -> Metrics {
      return {{"largest", rows.max().item<double>()}};
    }));
  }
  Loss training_step(const Batch& batch, StepContext& context) override {
    update(batch);  // not counted
    return trainer::Line::training_step(batch, context);
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    trainer::Line::validation_step(batch, context);
    update(batch);
    return {};
  }
  void update(const Batch& batch) {
    std::vector<int64_t> gold, predicted;
    for (const int64_t sample : batch.sample_ids) {
      gold.push_back(gold_of(sample));
      predicted.push_back(predicted_of(sample));
    }
    const Tensor index = at::tensor(batch.sample_ids, at::kDouble);
    classes->update(at::tensor(predicted), at::tensor(gold));
    mean->update(index);
    perplexity->update(Loss(index.sum() / 100, batch.count));
    auroc->update(index.remainder(4), index.remainder(2));
    precision->update(class_scores_of(index), index.to(at::kLong).remainder(3));
    of_classes->update(class_scores_of(index), index.to(at::kLong).remainder(3));
    of_sets->update(set_scores_of(index), sets_of(index));
    error->update(at::stack({index.square().sum(), at::scalar_tensor(batch.count, at::kDouble)}));
    largest->update(index.unsqueeze(1));
  }
  std::shared_ptr<ClassMetric> classes;
  std::shared_ptr<MeanMetric> mean;
  std::shared_ptr<PerplexityMetric> perplexity;
  std::shared_ptr<AurocMetric> auroc, of_classes, of_sets;
  std::shared_ptr<AveragePrecisionMetric> precision;
  std::shared_ptr<SumMetric> error;
  std::shared_ptr<RowMetric> largest;
};

// 10 validation samples divide neither by 3 ranks nor by batches of 4.
class MetricTest : public trainer::LoopTest {
 protected:
  MetricTest() {
    recipe_.training.epochs = 1;
    recipe_.evaluate.batch_size = 4;
  }
};

TEST_F(MetricTest, HasTheSameValuesForAnyNumberOfRanks) {
  std::vector<int64_t> gold, predicted;
  std::vector<double> scores, labels;
  for (int64_t i = 0; i < 10; ++i) {
    scores.push_back(static_cast<double>(i % 4));
    labels.push_back(static_cast<double>(i % 2));
    if (gold_of(i) < 0) continue;
    gold.push_back(gold_of(i));
    predicted.push_back(predicted_of(i));
  }
  const metrics::Confusion confusion(predicted, gold, 3);
  const Tensor index = at::arange(10, at::kDouble), class_scores = class_scores_of(index).contiguous(),
               classes = at::one_hot(index.to(at::kLong).remainder(3), 3).to(at::kDouble),
               set_scores = set_scores_of(index).contiguous(), sets = sets_of(index).contiguous();
  for (const char* strategy : {"ddp", "fsdp"}) {
    for (const int ranks : {1, 2, 3}) {
      recipe_.training.strategy = strategy;
      recipe_.training.shared_parameters =
          "off";  // under fsdp, ranks without samples evaluate a substitute, which must not count
      recipe_.output = folder_.path() / (strategy + std::to_string(ranks));
      const Metrics found = fit<Measured>(ranks).best.value();
      for (const char* name :
           {"accuracy", "precision_macro", "recall_macro", "f1_macro", "f1_micro", "matthews_correlation"}) {
        EXPECT_EQ(found.at(name), metrics::classification_metric(name, confusion)) << name << ranks;
      }
      EXPECT_EQ(found.at("mean_index"), 4.5) << ranks;
      EXPECT_NEAR(found.at("perplexity"), std::exp(0.045), 1e-14) << ranks;
      EXPECT_EQ(found.at("auroc"), metrics::area_under_roc(scores, labels)) << ranks;
      EXPECT_EQ(found.at("average_precision"),
                metrics::averaged(metrics::average_precision, span_of(class_scores), span_of(classes), 3,
                                  metrics::Average::weighted))
          << ranks;
      EXPECT_EQ(found.at("auroc_of_classes"),
                metrics::averaged(metrics::area_under_roc, span_of(class_scores), span_of(classes), 3,
                                  metrics::Average::macro))
          << ranks;
      EXPECT_EQ(found.at("auroc_of_sets"), metrics::averaged(metrics::area_under_roc, span_of(set_scores),
                                                             span_of(sets), 2, metrics::Average::micro))
          << ranks;
      EXPECT_EQ(found.at("rmse"), std::sqrt(28.5)) << ranks;
      EXPECT_EQ(found.at("largest"), 9) << ranks;
    }
  }
}

// All samples are of one class.
struct OneClass : trainer::Line {
  OneClass() : auroc(metric(std::make_shared<AurocMetric>())) {}
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    auroc->update(at::tensor(batch.sample_ids, at::kDouble), at::ones({batch.count}));
    return trainer::Line::validation_step(batch, context);
  }
  std::shared_ptr<AurocMetric> auroc;
};

TEST_F(MetricTest, AMetricThatIsNotDefinedIsLeftOut) {
  const Metrics found = fit<OneClass>(2).best.value();
  EXPECT_FALSE(found.contains("auroc"));
  EXPECT_TRUE(found.contains("loss"));
  recipe_.checkpoint.monitor = "auroc";
  recipe_.output = folder_.path() / "monitored";
  EXPECT_THAT(message_of<ConfigError>([&] { fit<OneClass>(); }), HasSubstr("has no metric \"auroc\""));
  // One sample is of one class, but all are not.
  recipe_.evaluate.sanity_steps = recipe_.evaluate.batch_size.emplace(1);
  recipe_.output = folder_.path() / "checked";
  EXPECT_TRUE(fit<Measured>().best.value().contains("auroc"));
}

TEST_F(MetricTest, CanBeMonitored) {
  recipe_.checkpoint.monitor = "auroc";
  EXPECT_TRUE(fit<Measured>().best.has_value());
  recipe_.checkpoint.monitor = "mean_index";
  EXPECT_THAT(message_of<ConfigError>([&] { fit<Measured>(); }),
              HasSubstr("set checkpoint.mode to max or min"));
}

struct NeverUpdated : trainer::Line {
  NeverUpdated() { metric(std::make_shared<MeanMetric>("accuracy")); }
};

struct NamedTwice : Measured {
  NamedTwice() { metric(mean); }
};

TEST_F(MetricTest, MistakesAreNamed) {
  EXPECT_THAT(message_of([&] { fit<NeverUpdated>(); }),
              has_all("metric \"accuracy\": ", "no sample was added"));
  EXPECT_THAT(message_of([&] { fit<NamedTwice>(); }),
              has_all("metric \"mean_index\": ", "another value", "same name"));
  EXPECT_THAT(message_of<ConfigError>([] { ClassMetric(3, {"acuracy"}); }),
              has_all("\"acuracy\"", "metric of classes", "did you mean \"accuracy\"?"));
  EXPECT_THAT(message_of<ConfigError>([] { ClassMetric(3, {"f1"}); }), HasSubstr("use f1_macro or f1_micro"));
  ClassMetric classes(3, {"accuracy"});
  EXPECT_THAT(message_of<ShapeError>([&] {
                classes.update(at::zeros({4, 2}), at::zeros({4}, at::kLong));
              }),
              HasSubstr("or scores with a last dimension of 3"));
  AurocMetric auroc;
  EXPECT_THAT(message_of<ShapeError>([&] {
                auroc.update(at::zeros({4, 2}), at::zeros({4}));
              }),
              HasSubstr("expected both [N]"));
  AurocMetric of_three(3);
  EXPECT_THAT(message_of<ShapeError>([&] {
                of_three.update(at::zeros({4, 2}), at::zeros({4}, at::kLong));
              }),
              HasSubstr("expected [N, 3], and classes [N] or 0 and 1 [N, 3]"));
  EXPECT_THAT(message_of<ShapeError>([&] {
                of_three.update(at::zeros({4, 3}), at::zeros({4}));
              }),
              HasSubstr("expected [N, 3], and classes [N] or 0 and 1 [N, 3]"));
  EXPECT_THAT(message_of<ConfigError>([] { AveragePrecisionMetric(3, "makro"); }),
              HasSubstr("did you mean \"macro\"?"));
  SumMetric sum({2}, [](const Tensor&) { return Metrics(); });
  EXPECT_THAT(message_of<ShapeError>([&] { sum.update(at::zeros({3})); }), HasSubstr("expected [2]"));
}

// --- log()

struct LogsBoth : trainer::Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    const double mean = at::tensor(batch.sample_ids, at::kDouble).mean().item<double>();
    context.log("both", mean, {.prog_bar = false, .on_epoch = true});
    context.log("epoch_only", mean, {.on_step = false, .on_epoch = true});
    context.log("step_only", mean, LogOptions{});
    return trainer::Line::training_step(batch, context);
  }
  void on_train_batch_end(const StepReport& report) override { steps.push_back(report.step); }
  std::vector<int64_t> steps;
  ~LogsBoth() override { EXPECT_EQ(steps.size(), 14U); }
};

TEST_F(MetricTest, LoggedValuesHaveMeansOverStepsAndEpochs) {
  recipe_.training.epochs = 2;
  recipe_.track.log_every = 3;
  for (const int ranks : {1, 2, 3}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    fit<LogsBoth>(ranks);
    EXPECT_EQ(steps_with("step_only"), (std::vector<int64_t>{3, 6, 7, 9, 12, 14})) << ranks;
    EXPECT_EQ(steps_with("epoch_only"), (std::vector<int64_t>{7, 14})) << ranks;
    EXPECT_EQ(steps_with("both_epoch"), (std::vector<int64_t>{7, 14})) << ranks;
    for (const auto& record : records()) {
      if (!record.contains("epoch_only")) continue;
      EXPECT_NEAR(record.at("epoch_only"), 13, 1e-12) << "the mean over the 27 samples of the epoch";
      EXPECT_NEAR(record.at("both_epoch"), 13, 1e-12);
    }
  }
}

TEST_F(MetricTest, LoggedMeansOfAnEpochSurviveAResumeInsideIt) {
  recipe_.checkpoint.every = "3";
  recipe_.checkpoint.keep_last = 0;
  recipe_.training.epochs = 2;
  fit<LogsBoth>(2);
  const auto whole = records();
  recipe_.resume = recipe_.output / "checkpoints/step-00000003";
  recipe_.output = folder_.path() / "resumed";
  struct Resumed : LogsBoth {
    ~Resumed() override { steps.resize(14); }
  };
  EXPECT_EQ(fit<Resumed>(2).resumed_after, 3);
  const auto epoch_means = [](const std::vector<nlohmann::json>& all) {
    std::vector<double> means;
    for (const auto& record : all) {
      if (record.contains("both_epoch")) means.push_back(record.at("both_epoch"));
    }
    return means;
  };
  EXPECT_EQ(epoch_means(records()), epoch_means(whole));
}

// Logs the number of samples and of steps with samples, whose sums do not depend on the ranks.
struct LogsSums : trainer::Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.log("trained", static_cast<double>(batch.sample_ids.size()),
                {.reduction = LogReduction::sum, .on_epoch = true});
    context.log("mean", static_cast<double>(batch.sample_ids.at(0)));
    return trainer::Line::training_step(batch, context);
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    context.log("indices", at::tensor(batch.sample_ids, at::kDouble).sum().item<double>(),
                {.reduction = LogReduction::sum});
    return trainer::Line::validation_step(batch, context);
  }
};

TEST_F(MetricTest, SumsAreOverRanksStepsAndEpochs) {
  recipe_.training.epochs = 2;
  recipe_.track.log_every = 3;
  for (const char* strategy : {"ddp", "fsdp"}) {
    for (const int ranks : {1, 2, 4}) {
      recipe_.training.strategy = strategy;
      recipe_.training.shared_parameters =
          "off";  // under fsdp, ranks without samples run a substitute, which must not count
      recipe_.output = folder_.path() / (strategy + std::to_string(ranks));
      fit<LogsSums>(ranks);
      std::vector<double> windows, epochs;
      for (const auto& record : records()) {
        if (record.contains("trained")) windows.push_back(record.at("trained"));
        if (record.contains("trained_epoch")) epochs.push_back(record.at("trained_epoch"));
        if (record.contains("eval_indices")) {
          EXPECT_EQ(record.at("eval_indices"), 45) << ranks;
        }
      }
      EXPECT_EQ(windows, (std::vector<double>{12, 12, 3, 8, 12, 7})) << strategy << ranks;
      EXPECT_EQ(epochs, (std::vector<double>{27, 27})) << strategy << ranks;
    }
  }
}

TEST_F(MetricTest, SumsSurviveAResumeInsideTheirWindow) {
  recipe_.checkpoint.every = "2";
  recipe_.checkpoint.keep_last = 0;
  recipe_.training.epochs = 1;
  recipe_.track.log_every = 3;
  fit<LogsSums>(2);
  const auto whole = records();
  recipe_.resume = recipe_.output / "checkpoints/step-00000002";
  recipe_.output = folder_.path() / "resumed";
  EXPECT_EQ(fit<LogsSums>(1).resumed_after, 2);
  const auto sums = [](const std::vector<nlohmann::json>& all) {
    std::vector<double> found;
    for (const auto& record : all) {
      for (const char* name : {"trained", "trained_epoch"})
        if (record.contains(name)) found.push_back(record.at(name));
    }
    return found;
  };
  EXPECT_EQ(sums(records()), sums(whole));
}

struct LogsASumWithWeight : trainer::Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.log("value", 1, {.weight = 2, .reduction = LogReduction::sum});
    return trainer::Line::training_step(batch, context);
  }
};

struct LogsAMeanAndASum : trainer::Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.log("value", 1);
    context.log("value", 1, {.reduction = LogReduction::sum});
    return trainer::Line::training_step(batch, context);
  }
};

TEST_F(MetricTest, SumsThatContradictOtherOptionsAreRefused) {
  EXPECT_THAT(message_of<ConfigError>([&] { fit<LogsASumWithWeight>(); }),
              HasSubstr("log(\"value\"): a sum has no weight"));
  EXPECT_THAT(message_of<ConfigError>([&] { fit<LogsAMeanAndASum>(); }),
              HasSubstr("log(\"value\"): the name is logged both as a mean"));
}

struct LogsNothing : trainer::Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.log("value", 1, {.on_step = false});
    return trainer::Line::training_step(batch, context);
  }
};

TEST_F(MetricTest, AValueThatWouldNotBeRecordedIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([&] { fit<LogsNothing>(); }),
              HasSubstr("neither on_step nor on_epoch is set"));
}

}  // namespace
}  // namespace stretto
