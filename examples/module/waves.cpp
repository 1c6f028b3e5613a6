// Classifies noisy recordings of waves, of different lengths, into four kinds, with its own dataset, model,
// metric and callback. docs/guide/module.md explains it.
//
//   module_waves waves.yaml -N 2 [SECTION.KEY=VALUE ...]
#include <numbers>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "stretto/stretto.h"

namespace {

using at::Tensor;

constexpr int64_t kinds = 4;  // sine, square, triangle, sawtooth

// The settings of this program, set in the recipe or on the command line (model.channels=32).
struct ModelSettings {
  int64_t channels = 16;
  int64_t kernel_size = 7;

  void fields(stretto::settings::Fields& field) {
    field("channels", channels, "channels of the first convolution; the second has twice as many",
          stretto::settings::at_least(1).at_most(4096));
    field("kernel_size", kernel_size, "taps of both convolutions, an odd number",
          stretto::settings::at_least(1).at_most(31));
  }
};

struct Settings {
  ModelSettings model;
  int64_t patience = 3;

  void fields(stretto::settings::Fields& field) {
    field("model", model, "the network");
    field("patience", patience, "evaluations without a better f1_macro after which the run ends",
          stretto::settings::at_least(1));
  }
};

// Recordings are generated on demand, each from its number alone, so that all ranks, epochs and resumed runs
// agree.
class Waves : public stretto::data::SampleDataset {
 public:
  Waves(int64_t first, int64_t count) : SampleDataset(lengths(first, count)), first_(first) {}

  stretto::data::Sample sample(int64_t index) const override {
    const int64_t number = first_ + index, kind = number % kinds;
    const at::Generator random = at::detail::createCPUGenerator(static_cast<uint64_t>(number));
    const Tensor start = at::rand({1}, random), frequency = 0.04 + 0.06 * at::rand({1}, random);
    const Tensor time = start + frequency * at::arange(length(number));
    const Tensor phase = time - time.floor(), sine = at::sin(2 * std::numbers::pi * phase);
    const Tensor wave = kind == 0   ? sine
                        : kind == 1 ? at::sign(sine)
                        : kind == 2 ? 4 * at::abs(phase - 0.5) - 1
                                    : 2 * phase - 1;
    return {{"signal", wave + 0.1 * at::randn(wave.sizes(), random)},
            {"mask", at::ones_like(wave)},  // 1 for content, 0 for padding
            {"labels", at::scalar_tensor(kind, at::kLong)}};
  }

 private:
  static int64_t length(int64_t number) { return 30 + number * 7 % 41; }
  static std::vector<int32_t> lengths(int64_t first, int64_t count) {
    std::vector<int32_t> lengths;
    for (int64_t i = 0; i < count; ++i) lengths.push_back(static_cast<int32_t>(length(first + i)));
    return lengths;
  }

  int64_t first_;
};

// Two convolutions over time, the mean over everything but padding, a linear layer.
struct WaveNet : torch::nn::Module {
  explicit WaveNet(const ModelSettings& settings)
      : first(convolution(1, settings.channels, settings.kernel_size)),
        second(convolution(settings.channels, 2 * settings.channels, settings.kernel_size)),
        head(2 * settings.channels, kinds) {
    register_module("first", first);
    register_module("second", second);
    register_module("head", head);
  }

  // signal, mask [B, L] -> logits [B, kinds]
  Tensor forward(const Tensor& signal, const Tensor& mask) {
    const auto type = head->weight.scalar_type();  // fp32, or as set by training.precision
    const Tensor keep = mask.to(type).unsqueeze(1);
    Tensor x = at::gelu(first(signal.to(type).unsqueeze(1))) * keep;
    x = at::gelu(second(x)) * keep;
    return head(x.sum(2) / keep.sum(2));
  }

  static torch::nn::Conv1d convolution(int64_t from, int64_t to, int64_t kernel_size) {
    return torch::nn::Conv1d(torch::nn::Conv1dOptions(from, to, kernel_size).padding(kernel_size / 2));
  }

  torch::nn::Conv1d first, second;
  torch::nn::Linear head;
};

class WaveTask : public stretto::Module {
 public:
  explicit WaveTask(const ModelSettings& settings) : net_(model(std::make_shared<WaveNet>(settings))) {}

  stretto::Loss training_step(const stretto::Batch& batch, stretto::StepContext& context) override {
    const Tensor logits = net_->forward(batch.at("signal"), batch.at("mask"));
    const Tensor right = logits.argmax(1).eq(batch.at("labels"));
    context.log("accuracy", right.to(at::kDouble).mean().item<double>());
    return stretto::nn::cross_entropy(logits, batch.at("labels"));
  }

  // F1 is not a mean over batches: it is computed from all predictions together.
  stretto::Predictions validation_step(const stretto::Batch& batch, stretto::StepContext&) override {
    const Tensor predicted = net_->forward(batch.at("signal"), batch.at("mask")).argmax(1);
    return at::stack({predicted, batch.at("labels")}, 1).to(at::kCPU, at::kDouble);
  }

  stretto::Metrics metrics(const stretto::Predictions& predictions) const override {
    const Tensor columns = predictions.rows.t().to(at::kLong).contiguous();  // [2, samples]
    const auto column = [&](int64_t i) {
      return std::span(columns[i].const_data_ptr<int64_t>(), static_cast<size_t>(columns.size(1)));
    };
    const stretto::metrics::Confusion confusion(column(0), column(1), kinds);
    return {{"accuracy", accuracy(confusion)}, {"f1_macro", f1_macro(confusion)}};
  }

  // The last layer has a higher learning rate than the others.
  stretto::OptimizerPlan configure_optimizers(stretto::OptimizerPlan plan) override {
    plan.groups = {{.pattern = "head.*", .lr_factor = 3}};
    return plan;
  }

 private:
  std::shared_ptr<WaveNet> net_;
};

// Ends a run when f1_macro has not improved for several evaluations, and again if that run is resumed.
class Patience : public stretto::Callback {
 public:
  explicit Patience(int64_t evaluations) : patience_(evaluations) {}
  std::string name() const override { return "patience"; }

  void fit_start(stretto::FitContext& fit) override { stop_after_patience(fit); }
  void evaluation_end(stretto::FitContext& fit, const stretto::Metrics& metrics) override {
    if (metrics.at("f1_macro") > best_) {
      best_ = metrics.at("f1_macro");
      waited_ = 0;
    } else {
      ++waited_;
    }
    stop_after_patience(fit);
  }

  void add_state(stretto::State& state) const override {
    state.scalars = {{"best", best_}, {"waited", waited_}};
  }
  void resume(const stretto::State& state) override {
    state.scalars.at("best").get_to(best_);
    state.scalars.at("waited").get_to(waited_);
  }

 private:
  void stop_after_patience(stretto::FitContext& fit) const {
    if (waited_ >= patience_)
      fit.stop(fmt::format("f1_macro has not risen above {:.4f} for {} evaluations", best_, waited_));
  }

  int64_t patience_;
  double best_ = -1;
  int64_t waited_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  return stretto::run_program(argc, argv, settings, [&](const stretto::Run& run) {
    torch::manual_seed(static_cast<uint64_t>(run.recipe.training.seed));  // for the initial weights
    const Waves train(0, 600), validation(600, 150);
    WaveTask task(settings.model);
    stretto::Trainer trainer(run.recipe, run.mesh, run.device);
    trainer.add(std::make_shared<Patience>(settings.patience));
    return trainer.fit(task, train, &validation);
  });
}
