#include <cmath>
#include <fstream>
#include <type_traits>

#include <torch/nn/modules/linear.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/trainer/run/loop_fixture.h"

namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

struct Predicting : Line {
  Predictions test_step(const Batch& batch, StepContext& context) override {
    context.log("tested", at::tensor(batch.sample_ids, at::kDouble).mean().item<double>());
    return {};
  }
  Predictions predict_step(const Batch& batch, StepContext&) override {
    return layer->forward(batch.at("x").to(layer->weight.scalar_type())).to(at::kDouble);
  }
};

class TestingTest : public LoopTest {
 protected:
  template <class M>
  double loss_by_test(const data::Dataset& samples) {
    double loss = 0;
    comm::run_rank_threads(1, [&](Group& group) {
      M module;
      const Mesh mesh = make_mesh(recipe_, group);
      loss = Trainer(recipe_, mesh, at::kCPU).test(module, samples).at("loss");
      const NamedTensors saved = SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
      for (const auto& parameter : module.root().named_parameters())
        EXPECT_TRUE(parameter.value().equal(saved.at(parameter.key()))) << "fp32, as it was loaded";
    });
    return loss;
  }
};

TEST_F(TestingTest, TestsAndPredictsWithTheBestModelOnAnyNumberOfRanks) {
  recipe_.training.epochs = 2;
  const Points samples(11);
  const auto outcome = [&](int ranks, const char* strategy) {
    recipe_.training.strategy = strategy;
    recipe_.output = folder_.path() / (strategy + std::to_string(ranks));
    fit<Predicting>(ranks);
    Tensor rows;
    comm::run_rank_threads(ranks, [&](Group& group) {
      Predicting module;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer trainer(recipe_, mesh, at::kCPU);
      EXPECT_EQ(trainer.test(module, samples).at("tested"), 5) << "the same on all ranks";
      const Tensor rank_rows = trainer.predict(module, samples).rows;
      EXPECT_EQ(rank_rows.defined(), group.rank() == 0);
      if (group.rank() == 0) rows = rank_rows;
    });
    EXPECT_EQ(nlohmann::json::parse(read_file(recipe_.output / "test_results.json")).at("tested"), 5);
    return rows;
  };
  const Tensor alone = outcome(1, "ddp");
  ASSERT_EQ(alone.sizes(), (std::vector<int64_t>{11, 1}));
  const NamedTensors weights = SafetensorsFile(folder_.path() / "ddp1/model/model.safetensors").load_all();
  for (int64_t i = 0; i < 11; ++i) {
    const Tensor by_hand = at::linear(samples.sample(i).at("x"), weights.at("weight"), weights.at("bias"));
    EXPECT_NEAR(alone[i].item<double>(), by_hand.item<double>(), 1e-12) << "in the order of the dataset";
  }
  for (const auto& [ranks, strategy] : {std::pair(2, "ddp"), std::pair(3, "ddp"), std::pair(2, "fsdp")})
    EXPECT_TRUE(alone.allclose(outcome(ranks, strategy), 1e-9, 1e-12)) << ranks << strategy;
}

// Computes in the dtype of its parameters.
struct OwnLayers : Line {
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor predicted = layer->forward(batch.at("x").to(layer->weight.scalar_type())).to(at::kDouble);
    return loss_of_mean(at::mse_loss(predicted, batch.at("y")), batch.count);
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    // Line's own function logs a metric of double weights. NOLINTNEXTLINE(bugprone-parent-virtual-call)
    return Module::validation_step(batch, context);
  }
};

// Computes under autocast.
struct TorchLayers : Module {
  TorchLayers() : layer(model(torch::nn::Linear(4, 1).ptr())) {
    at::NoGradGuard no_grad;
    for (Tensor& parameter : root().parameters()) parameter.fill_(0.25);
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    const Tensor predicted = layer->forward(batch.at("x").to(at::kFloat)).to(at::kDouble);
    return loss_of_mean(at::mse_loss(predicted, batch.at("y")), batch.count);
  }
  std::shared_ptr<torch::nn::LinearImpl> layer;
  int64_t samples = 0;
};

TEST_F(TestingTest, ComputesInThePrecisionOfTheRun) {
  const Points validation(10);
  recipe_.training.precision = "bf16";
  recipe_.training.products = "aten";
  recipe_.optimizer.as<optim::AdamwOptions>().lr = 0.03;
  const auto check = [&]<class M>(std::type_identity<M>) {
    recipe_.training.precision = "bf16";
    const double in_training = fit<M>().best->at("loss");
    EXPECT_EQ(loss_by_test<M>(validation), in_training);
    recipe_.training.precision = "fp32";
    EXPECT_NE(loss_by_test<M>(validation), in_training);
  };
  recipe_.output = folder_.path() / "own";
  check(std::type_identity<OwnLayers>());
  recipe_.output = folder_.path() / "torch";
  check(std::type_identity<TorchLayers>());
}

TEST_F(TestingTest, WeightsThatAreNotFiniteAreRefused) {
  const Points samples(5);
  comm::run_rank_threads(1, [&](Group& group) {
    Line module;
    {
      const at::NoGradGuard no_grad;
      module.layer->bias.fill_(NAN);
    }
    const Mesh mesh = make_mesh(recipe_, group);
    EXPECT_THAT(message_of<DataError>(
                    [&] { Trainer(recipe_, mesh, at::kCPU).test(module, samples, {.load = false}); }),
                HasSubstr("the module: bias holds NaN or infinity"));
    recipe_.checkpoint.allow_nonfinite = true;
    EXPECT_TRUE(
        std::isnan(Trainer(recipe_, mesh, at::kCPU).test(module, samples, {.load = false}).at("loss")));
  });
}

TEST_F(TestingTest, FollowsAFitOfTheSameModule) {
  recipe_.training.epochs = 1;
  const Points train(27), validation(10), samples(5);
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    recipe_.training.strategy = strategy;
    for (const char* shared : {"auto", "off"}) {
      recipe_.training.shared_parameters = shared;
      recipe_.output = folder_.path() / (strategy + std::string(shared));
      comm::run_rank_threads(2, [&](Group& group) {
        Predicting module;
        const Mesh mesh = make_mesh(recipe_, group);
        Trainer trainer(recipe_, mesh, at::kCPU);
        trainer.fit(module, train, &validation);
        const Tensor after = trainer.predict(module, samples).rows;
        Predicting other;
        const Tensor fresh = trainer.predict(other, samples).rows;
        if (group.rank() == 0) {
          EXPECT_TRUE(after.equal(fresh)) << strategy << shared;
        }
      });
    }
  }
}

// Predicts texts of different lengths; a metric needs those of all samples.
struct Writing : Line {
  static std::string text_of(int64_t sample) {
    return std::string(static_cast<size_t>(sample % 3), '\0') + "x";
  }
  Predictions validation_step(const Batch& batch, StepContext&) override { return texts_of(batch); }
  Predictions predict_step(const Batch& batch, StepContext&) override {
    Predictions predictions = texts_of(batch);
    if (with_rows) predictions.rows = at::tensor(batch.sample_ids, at::kDouble).unsqueeze(1);
    return predictions;
  }
  Metrics metrics(const Predictions& predictions) const override {
    double length = 0;
    for (const std::string& text : predictions.bytes) length += static_cast<double>(text.size());
    return {{"length", length}};
  }
  static Predictions texts_of(const Batch& batch) {
    Predictions predictions;
    for (const int64_t sample : batch.sample_ids) predictions.bytes.push_back(text_of(sample));
    return predictions;
  }
  bool with_rows = true;
};

TEST_F(TestingTest, PredictsBytesPerSampleInDatasetOrderOnAnyNumberOfRanks) {
  recipe_.evaluate.batch_size = 2;
  const Points samples(11);
  for (const bool with_rows : {false, true}) {
    for (const int ranks : {1, 2, 3}) {
      comm::run_rank_threads(ranks, [&](Group& group) {
        Writing module;
        module.with_rows = with_rows;
        const Mesh mesh = make_mesh(recipe_, group);
        Trainer trainer(recipe_, mesh, at::kCPU);
        const Predictions predictions = trainer.predict(module, samples, {.load = false});
        EXPECT_EQ(trainer.test(module, samples, {.load = false}).at("length"), 21) << "the same on all ranks";
        if (group.rank() != 0) {
          EXPECT_TRUE(predictions.empty());
          return;
        }
        ASSERT_EQ(std::ssize(predictions.bytes), samples.size());
        EXPECT_EQ(predictions.rows.defined(), with_rows);
        for (int64_t i = 0; i < samples.size(); ++i) {
          EXPECT_EQ(predictions.bytes[static_cast<size_t>(i)], Writing::text_of(i)) << i;
          if (!with_rows) continue;
          EXPECT_EQ(predictions.rows[i].item<double>(), static_cast<double>(i));
        }
      });
    }
  }
}

struct Files : DataModule {
  explicit Files(const std::filesystem::path& folder) : path(folder / "count") {}
  void prepare_data() override { std::ofstream(path, std::ios::app) << "27\n"; }
  void setup(Stage stage, const DataParallelRank& given) override {
    ranks = given;
    stages.push_back(stage);
    EXPECT_EQ(read_file(path).substr(0, 3), "27\n") << "prepared before setup on every rank";
  }
  const data::Dataset* train() override { return &train_; }
  const data::Dataset* validation() override { return &validation_; }
  std::vector<std::pair<std::string, const data::Dataset*>> more_validation() override {
    return {{"hard", &test_}};
  }
  const data::Dataset* test() override { return &test_; }
  std::filesystem::path path;
  DataParallelRank ranks;
  std::vector<Stage> stages;
  Points train_{27}, validation_{10}, test_{11};
};

TEST_F(TestingTest, ADataModuleGivesAllDatasets) {
  recipe_.training.epochs = 1;
  comm::run_rank_threads(2, [&](Group& group) {
    Predicting module;
    Files files(folder_.path());
    const Mesh mesh = make_mesh(recipe_, group);
    Trainer trainer(recipe_, mesh, at::kCPU);
    const FitResult result = trainer.fit(module, files);
    EXPECT_EQ(result.steps, 7);
    EXPECT_TRUE(result.best->contains("hard/loss"));
    EXPECT_EQ(trainer.test(module, files).at("tested"), 5);
    EXPECT_EQ(files.stages, (std::vector{Stage::fit, Stage::test}));
    EXPECT_EQ(files.ranks.rank, group.rank());
    EXPECT_EQ(files.ranks.size, 2);
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.predict(module, files); }),
                HasSubstr("predict() returned a null pointer"));
  });
  EXPECT_EQ(read_file(folder_.path() / "count"), "27\n27\n27\n")
      << "once per host and stage, not once per rank";
}

TEST_F(TestingTest, MistakesAreNamed) {
  const Points samples(5);
  comm::run_rank_threads(1, [&](Group& group) {
    Line module;
    const Mesh mesh = make_mesh(recipe_, group);
    Trainer trainer(recipe_, mesh, at::kCPU);
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.test(module, samples); }),
                has_all("run/model: ", "no such folder", "train the module first"));
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.predict(module, samples, {.load = false}); }),
                HasSubstr("predict_step is not overridden"));
    struct Short : Writing {
      Predictions predict_step(const Batch&, StepContext&) override { return {Tensor(), {"one"}}; }
    } fewer;
    EXPECT_THAT(message_of<ShapeError>([&] { trainer.predict(fewer, samples, {.load = false}); }),
                has_all("predict_step returned bytes of 1 sample", "expected 5"));
    struct Silent : Line {
      Predictions predict_step(const Batch&, StepContext&) override { return {}; }
    } silent;
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.predict(silent, samples, {.load = false}); }),
                HasSubstr("predict_step returned nothing"));
    struct Unmeasured : Writing {  // NOLINTNEXTLINE(bugprone-parent-virtual-call)
      Metrics metrics(const Predictions& predictions) const override { return Module::metrics(predictions); }
    } unmeasured;
    EXPECT_THAT(message_of<ConfigError>([&] { trainer.test(unmeasured, samples, {.load = false}); }),
                HasSubstr("validation_step returns bytes, but metrics() is not"));
    EXPECT_TRUE(trainer.test(module, samples, {.load = false}).contains("loss"));
    const std::filesystem::path other = folder_.path() / "other";
    std::filesystem::create_directory(other);
    save_safetensors(other / "model.safetensors", {{"weight", at::zeros({1, 3})}, {"bias", at::zeros({1})}});
    EXPECT_THAT(message_of<DataError>([&] { trainer.test(module, samples, {.model = other}); }),
                HasSubstr("the module's is [1, 4]"));
    save_safetensors(other / "model.safetensors", {{"weight", at::zeros({1, 4})}});
    EXPECT_THAT(message_of<DataError>([&] { trainer.test(module, samples, {.model = other}); }),
                HasSubstr("there is no bias, which the module has"));
  });
}

}  // namespace
}  // namespace stretto::trainer
