#include <csignal>

#include "stretto/trainer/run/loop_fixture.h"

// Tests steps that are rolled back.
namespace stretto::trainer {
namespace {

using ::testing::ElementsAre;

struct NanOnce : Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    Loss loss = Line::training_step(batch, context);
    if (context.step == 4 && !std::exchange(broken, true)) loss.sum = loss.sum * NAN;
    return loss;
  }
  bool broken = false;
};

// Sends SIGUSR1 to rank 0 before the step that is rolled back.
struct SaveRequest : Callback {
  std::string name() const override { return "save_request"; }
  void step_start(FitContext& fit) override {
    if (fit.mesh.world().rank() == 0 && fit.steps_done == 4 && !std::exchange(sent, true)) ::raise(SIGUSR1);
  }
  bool sent = false;
};

TEST_F(LoopTest, ASaveRequestedBeforeARollbackIsMadeAfterTheNextStep) {
  recipe_.training.max_steps = 8;
  recipe_.training.on_nonfinite = "rollback";
  recipe_.evaluate.every = "never";
  recipe_.checkpoint.every = 3;
  recipe_.checkpoint.keep_last = 0;
  for (const int ranks : {1, 2}) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    const FitResult result =
        fit<NanOnce>(ranks, [](Trainer& trainer) { trainer.add(std::make_shared<SaveRequest>()); });
    EXPECT_EQ(result.steps, 8);
    EXPECT_THAT(checkpoints(), ElementsAre(3, 4, 6, 8));
  }
}

}  // namespace
}  // namespace stretto::trainer
