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

// Its gradients are finite, unlike those that NanOnce has.
struct SpikeOnce : Line {
  Loss training_step(const Batch& batch, StepContext& context) override {
    Loss loss = Line::training_step(batch, context);
    if (context.step == 24 && !std::exchange(spiked, true)) loss.sum = loss.sum * 1e6;
    return loss;
  }
  bool spiked = false;
};

TEST_F(LoopTest, ASpikeThatIsRolledBackLeavesNoGradients) {
  recipe_.training.max_steps = 28;
  recipe_.training.on_spike = "rollback";
  recipe_.training.rollback_lr_factor = 1;
  recipe_.evaluate.every = "never";
  recipe_.checkpoint.every = 6;
  for (const int ranks : {1, 2}) {
    const auto trained = [&](auto fitting, const char* name) {
      recipe_.output = folder_.path() / fmt::format("{}-{}", name, ranks);
      fitting();
      return read_file(recipe_.output / "model/model.safetensors");
    };
    const std::string smooth = trained([&] { fit(ranks); }, "smooth");
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(trained([&] { fit<SpikeOnce>(ranks); }, "spike") == smooth);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("rolling back"));
  }
}

}  // namespace
}  // namespace stretto::trainer
