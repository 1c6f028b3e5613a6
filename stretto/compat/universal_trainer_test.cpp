#include <cstdlib>

#include "stretto/compat/foreign_support.h"
#include "stretto/optim_config/optimizers.h"

namespace stretto::compat {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(Foreign, ParametersOfPytorchUniversalTrainerSetARecipe) {
  ::setenv("HOME", folder_.path().c_str(), 1);
  const ForeignConfig foreign = read_universal_trainer(write("parameters.yml", parameters_yml));
  const Recipe set = recipe(foreign, "data: {train: a.tsv}\n");
  EXPECT_EQ(set.training.strategy, "ddp");
  EXPECT_EQ(set.training.precision, "fp16");
  const auto whole =
      write("parameters.yml", parameters_yml, "use_native_fp16: True", "use_native_fp16: False");
  EXPECT_EQ(recipe(read_universal_trainer(whole), "data: {train: a.tsv}\n").training.precision, "fp32");
  EXPECT_EQ(set.training.batch_size, 256);
  EXPECT_EQ(set.training.epochs, 3);
  EXPECT_EQ(set.optimizer.as<optim::AdamwOptions>().lr, 2e-5);
  EXPECT_EQ(set.output, folder_.path() / "pytorch_universal_trainer/models/bart_base_sst_baseline");
  EXPECT_EQ(set.resume, "auto");
  EXPECT_EQ(foreign.ranks, 2);
  EXPECT_EQ(foreign.hosts.nodes, 1);
  EXPECT_EQ(foreign.hosts.node_rank, 0);
  EXPECT_EQ(foreign.hosts.master_addr, "10.100.69.32");
  EXPECT_EQ(foreign.hosts.master_port, 1234);
  EXPECT_THAT(foreign.notes, Contains(has_all("use_fairscale_autowrap:", "blocks of the model")));

  const auto strategy = [&](const std::string& from, const std::string& to) {
    return recipe(read_universal_trainer(write("parameters.yml", parameters_yml, from, to)),
                  "data: {train: a.tsv}\n")
        .training.strategy;
  };
  EXPECT_EQ(strategy("use_fairscale_optimizer_sharding: False", "use_fairscale_optimizer_sharding: yes"),
            "zero2");
  EXPECT_EQ(strategy("use_fairscale_model_sharding: False", "use_fairscale_model_sharding: True"), "zero2");
  EXPECT_EQ(strategy("model_sharding: False\n    use_fairscale_autowrap: False\n"
                     "    use_fairscale_reshard_forward: False",
                     "model_sharding: True\n    use_fairscale_autowrap: True\n"
                     "    use_fairscale_reshard_forward: True"),
            "fsdp");
}

TEST_F(Foreign, UnsupportedParametersAreRefused) {
  const auto refuses = [&](const std::string& from, const std::string& to) {
    return refusal(
        [&] { recipe(read_universal_trainer(write("parameters.yml", parameters_yml, from, to))); });
  };
  EXPECT_THAT(refuses("optimizer_sharding: False\n    use_fairscale_model_sharding: False",
                      "optimizer_sharding: True\n    use_fairscale_model_sharding: True"),
              has_all("parameters.yml:15:35: transformers-params.use_fairscale_model_sharding:", "\"True\"",
                      "use_fairscale_optimizer_sharding: True"));
  const std::string alone = "is_distributed: False\n    use_fairscale_optimizer_sharding: True";
  EXPECT_THAT(refuses("is_distributed: True\n    use_native_fp16: True\n"
                      "    use_fairscale_optimizer_sharding: False",
                      alone),
              has_all("parameters.yml:", "is_distributed: True"));
  EXPECT_THAT(refuses("nodes: 1", "nodes: two"),
              has_all("parameters.yml:31:12: dist-params.nodes:", "\"two\"", "1 to 4096"));
  EXPECT_THAT(refuses("transformers-params:", "transformer-params:"),
              has_all("parameters.yml:6:1: transformer-params: the key is unknown",
                      "did you mean \"transformers-params\"?"));
  EXPECT_THAT(refusal([&] { read_universal_trainer(write("parameters.yml", "batch_size: 8\n")); }),
              has_all("parameters.yml:1:1: batch_size: the key is unknown",
                      "did you mean \"transformers-params.batch_size\"?"));
  EXPECT_THAT(
      refuses("use_native_fp16: True", "use_native_fp16: Ture"),
      has_all("parameters.yml:13:22: transformers-params.use_native_fp16:", "\"Ture\"", "true or false"));
  EXPECT_THAT(refuses("mode: 'train'", "mode: 'predict'"),
              has_all("parameters.yml:7:11: transformers-params.mode:", "\"predict\"", "train or test"));
  EXPECT_THAT(refuses("log_steps_ratio: 10", "log_steps_ratio: 0"),
              has_all("parameters.yml:", "transformers-params.log_steps_ratio:", "\"0\"", "per epoch"));
}

TEST_F(Foreign, ParametersAreAWholeCommand) {
  ::setenv("HOME", folder_.path().c_str(), 1);
  for (const char* name : {"sentiment-train", "sentiment-dev"}) write(name, "a film\t1\n");
  const std::string data = "data_dir: '~/pytorch_universal_trainer/data'", here = "data_dir: '~'";
  const auto load = [&](const std::string& from = "", const std::string& to = "") {
    std::string text = parameters_yml;
    text.replace(text.find(data), data.size(), here);
    text.replace(text.find("facebook/bart-base"), 18, "bart");
    return load_recipe("", {}, {}, read_universal_trainer(write("parameters.yml", text, from, to)));
  };
  const Recipe whole = load();
  EXPECT_EQ(whole.model.path, folder_.path() / "bart");
  EXPECT_EQ(whole.data.train, folder_.path() / "sentiment-train");
  EXPECT_EQ(whole.data.validation, folder_.path() / "sentiment-dev");
  EXPECT_FALSE(whole.data.test) << "there is no such file, and training does not read it";
  EXPECT_EQ(whole.data.max_length, 200);
  EXPECT_EQ(whole.track.log_every, Interval("0.1ep"));
  EXPECT_EQ(whole.checkpoint.every, Interval("1ep"));
  EXPECT_EQ(whole.scheduler.type, "LinearWithWarmup");
  EXPECT_EQ(whole.optimizer.as<optim::AdamwOptions>().weight_decay, 0.01);
  EXPECT_EQ(whole.training.seed, 42);
  EXPECT_THAT(whole.origins.label("data.train"),
              HasSubstr("parameters.yml:3:15: data-params.data_dir: data.train"));

  EXPECT_FALSE(load("is_dev_file: True", "is_dev_file: False").data.validation);
  EXPECT_EQ(load("continue_training: False", "continue_training: True").resume, "true");
  EXPECT_EQ(load("continue_training: False\n    continue_training_path: \"\"",
                 "continue_training: True\n    continue_training_path: '~/run'")
                .resume,
            folder_.path() / "run");
  const Recipe halves = load("save_steps_ratio: 1", "save_steps_ratio: 2");
  EXPECT_EQ(halves.checkpoint.every, Interval("0.5ep"));
  EXPECT_EQ(load("mode: 'train'", "mode: 'test'").data.test, folder_.path() / "sentiment-test");
  EXPECT_THAT(read_universal_trainer(folder_.path() / "parameters.yml").test_place,
              HasSubstr("parameters.yml:7:11: transformers-params.mode"));

  std::filesystem::remove(folder_.path() / "sentiment-train");
  write("sentiment-train.tsv", "a film\t1\n");
  EXPECT_EQ(load().data.train, folder_.path() / "sentiment-train.tsv");
}

TEST_F(Foreign, ARecipesOwnDataReplacesThatOfParameters) {
  const Recipe own = recipe(read_universal_trainer(write("parameters.yml", parameters_yml)),
                            "data: {train: a.tsv}\ntrack: {log_every: 5}\n");
  EXPECT_EQ(own.data.train, "a.tsv");
  EXPECT_FALSE(own.data.validation);
  EXPECT_EQ(own.track.log_every, Interval(5));
}

}  // namespace
}  // namespace stretto::compat
