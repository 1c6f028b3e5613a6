#include "stretto/base/error.h"
#include "stretto/data/curriculum.h"
#include "stretto/trainer/run/loop_fixture.h"

// Runs that train on one dataset after the other.
namespace stretto::trainer {
namespace {

// Points whose targets are offset.
class Shifted : public Points {
 public:
  Shifted(int64_t count, double shift) : Points(count), shift_(shift) {}
  data::Sample sample(int64_t index) const override {
    data::Sample sample = Points::sample(index);
    sample["y"] = sample["y"] + shift_;
    return sample;
  }

 private:
  double shift_;
};

class CurriculumTraining : public LoopTest {
 protected:
  CurriculumTraining() {
    recipe_.training.max_steps = 12;
    recipe_.checkpoint.every = 100;
    recipe_.track.log_every = 1;
  }
  void train(const std::string& run, int ranks) {
    recipe_.output = folder_.path() / run;
    const Shifted easy(9, 0), hard(7, 3);
    data::Curriculum curriculum({.max_steps = 12, .global_batch_size = 4, .seed = 5});
    curriculum.add_ratio(easy, 0.5);
    curriculum.add_rest(hard);
    comm::run_rank_threads(ranks, [&](Group& group) {
      Line module;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer(recipe_, mesh, at::kCPU).fit(module, curriculum, nullptr);
    });
  }
  std::vector<double> losses() const {
    std::vector<double> losses;
    for (const auto& record : records())
      if (record.contains("loss")) losses.push_back(record.at("loss"));
    return losses;
  }
};

TEST_F(CurriculumTraining, ResumesAtTheExactSampleOnAnyNumberOfRanks) {
  train("whole", 1);
  const std::vector<double> expected = losses();
  ASSERT_EQ(expected.size(), 12u);
  EXPECT_GT(expected[6], 5 * expected[5]) << "the second stage has other targets";
  train("two", 2);
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(losses()[i], expected[i], 1e-12) << i;
  for (const int64_t steps : {1, 5, 6, 7}) {
    recipe_.training.steps_this_run = steps;
    recipe_.resume = "auto";
    for (int64_t done = 0, part = 0; done < 12; done += steps, ++part)
      train(fmt::format("parts-{}", steps), 1 + static_cast<int>(part % 2));
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(losses().at(i), expected[i], 1e-12) << steps << i;
  }
}

TEST_F(CurriculumTraining, AnotherCurriculumIsNotResumed) {
  recipe_.training.steps_this_run = 3;
  train("run", 1);
  recipe_.resume = "auto";
  const Shifted easy(9, 0);
  data::Curriculum other({.max_steps = 12, .global_batch_size = 4, .seed = 5});
  other.add_rest(easy);
  comm::run_rank_threads(1, [&](Group& group) {
    Line module;
    const Mesh mesh = make_mesh(recipe_, group);
    Trainer trainer(recipe_, mesh, at::kCPU);
    EXPECT_THROW(trainer.fit(module, other, nullptr), ConfigError);
  });
}

}  // namespace
}  // namespace stretto::trainer
