#include "stretto/trainer/run/session.h"

#include "stretto/base/message_support.h"
#include "stretto/tensor/state_source.h"
#include "stretto/trainer/run/loop_fixture.h"
#include "stretto/trainer/run/training_run.h"

// Tests that a run is the same regardless of the source of its state.
namespace stretto::trainer {
namespace {

using ::testing::HasSubstr;

struct RunOn {
  std::string strategy;
  MeshShape shape;
};

class SessionTest : public LoopTest {
 protected:
  SessionTest() {
    recipe_.track.log_every = 1;
    recipe_.evaluate.every = "never";
    recipe_.optimizer = optim::AdamwOptions{.lr = 0.1};
    recipe_.scheduler = optim::LinearWithWarmupOptions{.num_warmup_steps = 4};
  }

  // Trains up to step `until`; 0: to the end.
  void train(const RunOn& on, int64_t until = 0) {
    recipe_.training.strategy = on.strategy;
    recipe_.training.steps_this_run = std::nullopt;
    if (until > 0) recipe_.training.steps_this_run = until - steps_done_;
    steps_done_ = until;
    const Points train(27);
    GroupOptions options;
    options.deadline = std::chrono::seconds(20);
    comm::run_rank_threads(on.shape.ranks(), options, [&](Group& world) {
      Line module;
      const Mesh mesh = make_mesh(recipe_, world, on.shape);
      Trainer(recipe_, mesh, at::kCPU).fit(module, train, nullptr);
    });
  }
  // Returns the losses by step.
  std::vector<double> losses() const {
    std::vector<double> losses;
    for (const auto& record : records()) losses.push_back(record.at("loss"));
    return losses;
  }

  int64_t steps_done_ = 0;
};

// A run that leaves its mesh after each step, so that each mesh is left for each other one.
TEST_F(SessionTest, SavedOnAnyMeshItContinuesOnAnyOther) {
  const RunOn meshes[] = {{"ddp", {}},
                          {"ddp", {.dp_replicate = 2, .cp = 2}},
                          {"zero1", {.dp_shard = 1, .cp = 2}},
                          {"zero2", {.dp_shard = 3}},
                          {"fsdp", {.dp_shard = 2, .cp = 2}},
                          {"hsdp", {.dp_replicate = 2, .dp_shard = 1, .cp = 2}},
                          {"hsdp", {.dp_replicate = 2, .dp_shard = 2}}};
  std::vector<RunOn> path;
  for (size_t mesh = 0; mesh < std::size(meshes); ++mesh)
    for (size_t other = mesh + 1; other < std::size(meshes); ++other)
      path.insert(path.end(), {meshes[mesh], meshes[other]});
  path.push_back(meshes[0]);
  recipe_.training.epochs = 7;
  recipe_.output = folder_.path() / "alone";
  train(meshes[0]);
  const std::vector<double> expected = losses();
  ASSERT_GT(expected.size(), path.size());
  recipe_.output = folder_.path() / "moved";
  steps_done_ = 0;
  for (size_t i = 0; i + 1 < path.size(); ++i) train(path[i], static_cast<int64_t>(i) + 1);
  train(path.back());
  const std::vector<double> found = losses();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t step = 0; step < found.size(); ++step) {
    const RunOn& on = path[std::min(step, path.size() - 1)];
    EXPECT_NEAR(found[step], expected[step], 1e-10)
        << "step " << step + 1 << " on " << on.strategy << " " << on.shape.text();
  }
}

// A copy of the state of one rank.
class CopiedState : public StateSource {
 public:
  explicit CopiedState(const State& state) : state_(state) {
    for (Entry& entry : state_.tensors)
      for (Piece& piece : entry.pieces) piece.data = piece.data.clone();
  }
  std::set<std::string> tensors() const override {
    std::set<std::string> names;
    for (const Entry& entry : state_.tensors) names.insert(entry.name);
    return names;
  }
  void fill(State& state) override {
    const at::NoGradGuard no_grad;
    ASSERT_EQ(state.tensors.size(), state_.tensors.size());
    for (size_t i = 0; i < state.tensors.size(); ++i) {
      ASSERT_EQ(state.tensors[i].name, state_.tensors[i].name);
      for (size_t p = 0; p < state.tensors[i].pieces.size(); ++p)
        state.tensors[i].pieces[p].data.copy_(state_.tensors[i].pieces[p].data);
    }
    state.scalars = state_.scalars;
  }
  const std::map<std::string, nlohmann::json>& scalars() const { return state_.scalars; }

 private:
  State state_;
};

struct LoggingLine : Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    context.log("samples", static_cast<double>(batch.count), {.on_epoch = true});
    return Line::training_step(batch, context);
  }
};

// A new session made from the state, and the same session taken back to it, have this state and take the same
// steps.
TEST_F(SessionTest, AStartFromAStateAndAReturnToItAreTheSame) {
  recipe_.evaluate.every = 9;
  comm::run_rank_threads(1, [&](Group& world) {
    const Points train(27), validation(10);
    const Mesh mesh = make_mesh(recipe_, world);
    LoggingLine modules[2];
    track::Trackers trackers;
    const auto parts_of = [&](Line& module, trainer::Callbacks& callbacks) -> SessionParts {
      return {.recipe = recipe_,
              .mesh = mesh,
              .device = at::kCPU,
              .module = module,
              .train = train,
              .callbacks = callbacks,
              .trackers = trackers,
              .validation = &validation};
    };
    trainer::Callbacks callbacks({}, {recipe_, modules[0], mesh, trackers, train});
    const auto session = make_session(parts_of(modules[0], callbacks));
    TrainingRun run(*session);
    StepReport report;
    for (int step = 0; step < 9; ++step) {
      report = run.step();
      session->step_log.add(report);
      session->train_loss.add(report.loss);
    }
    session->models.improve(session->evaluator.evaluate(9).metrics, report.loss, report);
    make_folders(recipe_.output / "model");
    CopiedState state(session->state());
    std::vector<double> expected;
    for (int step = 0; step < 5; ++step) {
      report = run.step();
      session->step_log.add(report);
      session->train_loss.add(report.loss);
      expected.push_back(report.loss);
    }
    session->evaluator.evaluate(14);
    session->evaluator.count();
    session->restore(state);
    EXPECT_EQ(session->steps_done(), 9);
    EXPECT_EQ(session->state().scalars, state.scalars());
    const auto other = make_session(parts_of(modules[1], callbacks), &state);
    EXPECT_EQ(other->steps_done(), 9);
    EXPECT_EQ(other->total_steps(), 21);
    EXPECT_EQ(other->state().scalars, state.scalars());
    TrainingRun other_run(*other);
    for (const double loss : expected) {
      EXPECT_EQ(run.step().loss, loss);
      EXPECT_EQ(other_run.step().loss, loss);
    }
  });
}

TEST_F(SessionTest, AMeshWithoutBatchesIsRefused) {
  comm::run_rank_threads(1, [&](Group& world) {
    const Points train(27);
    const Mesh mesh(world, {});
    Line module;
    EXPECT_THAT(
        message_of<ConfigError>([&] { Trainer(recipe_, mesh, at::kCPU).fit(module, train, nullptr); }),
        HasSubstr("make it by make_mesh()"));
  });
}

// Records how long this rank is inside calls of each group in a step.
struct Inside : Callback {
  std::string name() const override { return "inside"; }
  static double of(const FitContext& fit, Axes axes) { return fit.mesh.group(axes).seconds_inside(); }
  void step_start(FitContext& fit) override {
    shard = of(fit, Axis::dp_shard), replicate = of(fit, Axis::dp_replicate);
  }
  void step_end(FitContext& fit, const StepReport& report) override {
    const double in_shard = of(fit, Axis::dp_shard) - shard;
    const double in_replicas = of(fit, Axis::dp_replicate) - replicate;
    EXPECT_GT(in_shard, 0);
    EXPECT_GT(in_replicas, 0);
    EXPECT_GE(report.communication, in_shard + in_replicas - 1e-9);
  }
  double shard = 0, replicate = 0;
};

TEST_F(SessionTest, CommunicationIsSummedOverAllGroups) {
  recipe_.training.strategy = "hsdp";
  recipe_.training.dp_shard = 2;
  recipe_.training.max_steps = 3;
  backend_ = "tcp";
  fit(4, [](Trainer& trainer) { trainer.add(std::make_shared<Inside>()); });
}

}  // namespace
}  // namespace stretto::trainer
