#include <stdexcept>

#include "tests/messages/mistakes.h"

#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/trainer/api/callback.h"
#include "stretto/trainer/api/standard_metrics.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/run/monitor.h"

// Mistakes in a program's Module, and in its calls of the Trainer and of a Group.
namespace stretto {
namespace {

class Points : public data::SampleDataset {
 public:
  explicit Points(int64_t count = 4) : SampleDataset(count) {}
  data::Sample sample(int64_t index) const override {
    return {{"x", at::full({2}, static_cast<double>(index))}};
  }
};

struct Line : Module {
  Line() : layer(model(std::make_shared<nn::Linear>(2, 1))) {
    for (const Tensor& parameter : layer->parameters()) parameter.detach().zero_();
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    return {layer->forward(batch.at("x")).sum(), batch.count};
  }
  std::shared_ptr<nn::Linear> layer;
};

struct Empty : Module {
  Loss training_step(const Batch&, StepContext&) override { return {}; }
};

// A module whose steps are functions.
struct Steps : Line {
  std::function<Loss(const Batch&, StepContext&)> train;
  std::function<Predictions(const Batch&, StepContext&)> validate;
  bool automatic = true;
  Loss training_step(const Batch& batch, StepContext& context) override {
    return train ? train(batch, context) : Line::training_step(batch, context);
  }
  Predictions validation_step(const Batch& batch, StepContext& context) override {
    return validate ? validate(batch, context) : Module::validation_step(batch, context);
  }
  bool automatic_optimization() const override { return automatic; }
};

void on_one_rank(const std::function<void(Trainer&)>& use) {
  Recipe recipe;
  recipe.output = "run";
  recipe.training.epochs = 1;
  recipe.track.progress = "off";
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe, group);
    Trainer trainer(recipe, mesh, at::kCPU);
    use(trainer);
  });
}

void fit(Module& module) {
  on_one_rank([&](Trainer& trainer) {
    const Points train, validation;
    trainer.fit(module, train, &validation);
  });
}

}  // namespace

void add_modules(Mistakes& all) {
  const auto add = [&](const char* name, const std::function<void()>& make) {
    all.push_back({std::string("module: ") + name, make});
  };
  const auto add_step = [&](const char* name, const decltype(Steps::train)& train) {
    add(name, [=] {
      Steps module;
      module.train = train;
      fit(module);
    });
  };
  const auto add_validation = [&](const char* name, const decltype(Steps::validate)& validate) {
    add(name, [=] {
      Steps module;
      module.validate = validate;
      fit(module);
    });
  };
  add("no model", [] {
    Empty module;
    fit(module);
  });
  add("a second model", [] {
    struct Two : Line {
      Two() { model(std::make_shared<nn::Linear>(2, 1)); }
    } module;
  });
  add("a teacher that is null", [] {
    struct Taught : Line {
      Taught() { teacher(std::shared_ptr<nn::Linear>()); }
    } module;
  });
  add_step("no loss", [](const Batch&, StepContext&) { return Loss(); });
  add_step("a loss per sample", [](const Batch& batch, StepContext&) {
    return Loss(at::zeros({batch.count}).requires_grad_(), batch.count);
  });
  add_step("a loss without a graph",
           [](const Batch& batch, StepContext&) { return Loss(at::zeros({}), batch.count); });
  add_step("a loss without a count", [](const Batch& batch, StepContext&) {
    return Loss(at::zeros({}).requires_grad_(), -batch.count);
  });
  add_step("a tensor that the batch lacks",
           [](const Batch& batch, StepContext&) { return Loss(batch.at("y").sum(), batch.count); });
  add_step("a name that the Trainer logs", [](const Batch& batch, StepContext& context) {
    context.log("lr", 1);
    return Loss(batch.at("x").sum(), batch.count);
  });
  add_step("a value that is recorded nowhere", [](const Batch& batch, StepContext& context) {
    context.log("accuracy", 1, {.on_step = false});
    return Loss(batch.at("x").sum(), batch.count);
  });
  add_step("manual() of an automatic step", [](const Batch& batch, StepContext& context) {
    context.manual();
    return Loss(batch.at("x").sum(), batch.count);
  });
  add("manual optimization without named optimizers", [] {
    Steps module;
    module.automatic = false;
    module.validate = [](const Batch&, StepContext&) { return Predictions(); };
    fit(module);
  });
  add_validation("rows of another shape", [](const Batch& batch, StepContext&) {
    return Predictions(at::zeros({batch.count + 1, 2}));
  });
  add_validation("bytes of too few samples",
                 [](const Batch&, StepContext&) { return Predictions(Tensor(), {"one"}); });
  add_validation("rows without metrics()", [](const Batch& batch, StepContext&) {
    return Predictions(at::zeros({batch.count, 1}, at::kDouble));
  });
  add("predict() without predict_step", [] {
    Line module;
    on_one_rank([&](Trainer& trainer) { trainer.predict(module, Points(), {.load = false}); });
  });
  add("a metric without samples", [] {
    struct Measured : Line {
      Measured() { metric(std::make_shared<ClassMetric>(2, std::vector<std::string>{"accuracy"})); }
    } module;
    fit(module);
  });
  const auto add_trainer = [&](const char* name, const std::function<void(Trainer&)>& use) {
    all.push_back({std::string("trainer: ") + name, [=] { on_one_rank(use); }});
  };
  add_trainer("validation samples without a name",
              [](Trainer& trainer) { trainer.add_validation("", Points()); });
  add_trainer("two validation sets of one name", [](Trainer& trainer) {
    const Points samples;
    trainer.add_validation("hard", samples);
    trainer.add_validation("hard", samples);
  });
  add_trainer("test() without a model", [](Trainer& trainer) {
    Line module;
    trainer.test(module, Points());
  });
  add_trainer("no training samples", [](Trainer& trainer) {
    Line module;
    trainer.fit(module, Points(0), nullptr);
  });
  add_trainer("no validation samples", [](Trainer& trainer) {
    Line module;
    const Points train, validation(0);
    trainer.fit(module, train, &validation);
  });
  add_trainer("predict() without samples", [](Trainer& trainer) {
    Line module;
    trainer.predict(module, Points(0), {.load = false});
  });
  add_trainer("a model rule that names no metric",
              [](Trainer& trainer) { trainer.register_model_saving("best/f1"); });
  add_trainer("a callback that throws", [](Trainer& trainer) {
    struct Faulty : Callback {
      std::string name() const override { return "faulty"; }
      void step_end(FitContext&, const StepReport&) override { throw std::runtime_error("the disk is full"); }
    };
    trainer.add(std::make_shared<Faulty>());
    Line module;
    trainer.fit(module, Points(), nullptr);
  });
  const auto add_monitor = [&](const char* name, const std::string& yaml,
                               const std::vector<std::string>& possible = {}) {
    all.push_back({std::string("trainer: ") + name,
                   [=] { trainer::require_metrics(parse_recipe(yaml, "r.yaml"), possible); }});
  };
  add_monitor("a metric that evaluations lack", "scheduler: {type: ReduceLROnPlateau, monitor: recall}\n",
              {"loss", "accuracy"});
  add_monitor("a metric without a direction", "early_stopping: {patience: 1, monitor: quality}\n");
  add_monitor("a model rule without a direction", "checkpoint: {save_models: [best_quality]}\n");

  const auto add_group = [&](const char* name, int ranks, const std::function<void(Group&)>& use) {
    all.push_back({std::string("group: ") + name, [=] {
                     GroupOptions options;
                     options.compare_calls = true;
                     comm::run_rank_threads(ranks, options, use);
                   }});
  };
  add_group("a rank that does not exist", 1, [](Group& group) { group.broadcast(at::zeros({1}), 1).wait(); });
  add_group("a tensor with gaps", 1, [](Group& group) { group.all_reduce(at::zeros({2, 2}).t()).wait(); });
  add_group("a part of another size", 2,
            [](Group& group) { group.all_gather(at::zeros({3}), at::zeros({2})).wait(); });
  add_group("tensors of different sizes", 2,
            [](Group& group) { group.all_reduce(at::zeros({1 + group.rank()})).wait(); });
}

}  // namespace stretto
