#include "stretto/base/message_support.h"
#include "stretto/compat/foreign_support.h"

namespace stretto::compat {
namespace {

ForeignConfig hps(const std::string& text) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "hps_config.yaml", text);
  return read_hps(folder.path() / "hps_config.yaml");
}

std::vector<std::string> settings_of(const ForeignConfig& config) {
  std::vector<std::string> settings;
  for (const ForeignSetting& setting : config.settings)
    settings.push_back(setting.name + "=" + setting.value + (setting.implied ? " implied" : ""));
  return settings;
}

TEST(Hps, IsTranslatedToSettings) {
  EXPECT_THAT(settings_of(hps(R"(hps:
  epochs: 40
  batch_size: 35
  optimizer:
    type: AdamW
    lr: "1e-3"
    betas: [0.9, 0.98]
  scheduler:
    type: OneCycleLR
    max_lr: 1e-3
)")),
              testing::ElementsAre("training.epochs=40", "training.batch_size=35", "optimizer.type=AdamW",
                                   "optimizer.lr=1e-3", "optimizer.betas=[0.9, 0.98]",
                                   "scheduler.type=OneCycleLR", "scheduler.max_lr=1e-3"));
  const ForeignConfig other = hps(
      "hps: {max_steps: 100, batch_size: [32, 64], optim: {type: SGD}, scheduler: {type: LinearWithWarmup, num_warmup_steps: 0.1, num_training_steps: 7}}");
  EXPECT_THAT(
      settings_of(other),
      testing::ElementsAre("training.max_steps=100", "training.batch_size=32", "evaluate.batch_size=64",
                           "optimizer.type=SGD", "scheduler.type=LinearWithWarmup",
                           "scheduler.warmup_ratio=0.1", "training.epochs=1 implied"));
  EXPECT_THAT(other.notes,
              testing::ElementsAre(has_all("hps.scheduler.num_training_steps:", "length of the run")));
  EXPECT_THAT(settings_of(hps("hps: {epochs: 2}")),
              testing::ElementsAre("training.epochs=2", "scheduler.type=Constant implied"));
}

TEST(Hps, MistakesAreRefusedWithTheirPlace) {
  const auto refuses = [](const std::string& text, const auto&... parts) {
    EXPECT_THAT(message_of<ConfigError>([&] { hps(text); }), has_all(parts...)) << text;
  };
  refuses("epochs: 3", "hps_config.yaml:1:", "section hps");
  refuses("hps: {epoch: 3}", "hps_config.yaml:1:7: hps.epoch:", "did you mean \"hps.epochs\"?");
  refuses("hps: {optimizer: AdamW}", "hps_config.yaml:1:18: hps.optimizer:", "\"AdamW\"", "keys");
  refuses("hps: {batch_size: [1, 2, 3]}", "hps_config.yaml:1:19: hps.batch_size:", "one number", "two");
  refuses("hps: {step_scheduler_per_epoch: true}",
          "hps_config.yaml:1:33: hps.step_scheduler_per_epoch:", "optimizer steps");
  const TempFolder folder;
  write_file_atomic(folder.path() / "r.yaml", "{}");
  write_file_atomic(folder.path() / "hps.yaml", "hps:\n  optimizer: {type: AdamW, learning_rate: 1}\n");
  EXPECT_THAT(message_of<ConfigError>([&] {
                load_recipe(folder.path() / "r.yaml", {}, {}, read_hps(folder.path() / "hps.yaml"));
              }),
              has_all("hps.yaml:2:43: hps.optimizer.learning_rate:", "known here: type, lr,"));
}

}  // namespace
}  // namespace stretto::compat
