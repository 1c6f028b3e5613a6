#include "tests/train/run_states.h"
#include "tests/train/thread_workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"

// A run that was stopped or moved is resumed as if it had never stopped, or reports why it cannot be.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Resume = RunStates<ThreadWorkspace>;

enum class At { every_step, some_steps };

struct Setting {
  const char* name;
  int ranks;
  At resumes;
  const char* settings;
};

class ResumeAtEveryStep : public Resume, public ::testing::WithParamInterface<Setting> {
 protected:
  // The records of steps and evaluations, without timings.
  std::vector<nlohmann::json> records(const std::string& run) const {
    std::vector<nlohmann::json> records = workspace_.metrics(run);
    for (nlohmann::json& record : records) {
      for (const char* timing :
           {"time", "samples_per_second", "tokens_per_second", "communication", "data_wait", "rank_imbalance",
            "memory_mib", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second"})
        record.erase(timing);
    }
    return records;
  }

  // A run folder with only the checkpoint of this step, and with the model if the run had been evaluated by
  // then.
  void copy_run(const std::string& from, int64_t step, const std::string& to) const {
    make_folders(path(to + "/checkpoints"));
    const auto recursive = std::filesystem::copy_options::recursive;
    std::filesystem::copy(checkpoint(from, step), checkpoint(to, step), recursive);
    const auto records = workspace_.metrics(from);
    const auto evaluated = std::find_if(records.begin(), records.end(), [](const nlohmann::json& record) {
      return record.contains("eval_loss");
    });
    if (evaluated != records.end() && evaluated->at("step") <= step) {
      std::filesystem::copy(path(from + "/model"), path(to + "/model"), recursive);
    }
  }
};

TEST_P(ResumeAtEveryStep, EqualsTheUninterruptedRun) {
  workspace_.write("train.tsv", make_rows(43, 3));  // 16 + 16 + 11 samples per epoch
  const std::string settings =
      std::string("training.epochs=3 checkpoint.every=1 checkpoint.keep_last=0 ") + GetParam().settings;
  workspace_.train("whole", GetParam().ranks, settings);
  const int64_t last = newest("whole");
  ASSERT_GE(last, 9);
  const auto whole = records("whole");
  for (int64_t step = 1; step < last; ++step) {
    // The first epoch has 3 steps. What differs between some settings does not depend on the position: it is
    // once inside of an epoch, and once at its end, where the run evaluates.
    const bool is_chosen = step == 3 || step == 4;
    if (GetParam().resumes == At::some_steps && !is_chosen) continue;
    SCOPED_TRACE(fmt::format("resumed after step {} of {}", step, last));
    const std::string run = "from" + std::to_string(step);
    copy_run("whole", step, run);
    workspace_.train(run, GetParam().ranks, settings);
    EXPECT_EQ(newest(run), last);
    expect_same(state_of(run, last), state_of("whole", last));
    const auto resumed = records(run);
    ASSERT_GT(resumed.size(), 0u);
    ASSERT_LE(resumed.size(), whole.size());
    EXPECT_TRUE(std::equal(resumed.rbegin(), resumed.rend(), whole.rbegin()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, ResumeAtEveryStep,
    ::testing::Values(
        Setting{"OneRankAccumulating", 1, At::some_steps,
                "training.precision=fp32 training.grad_accumulation_steps=2"},
        Setting{"TwoRanksAccumulating", 2, At::every_step,
                "training.precision=fp32 training.grad_accumulation_steps=2"},
        Setting{"TwoRanksBf16", 2, At::some_steps, "training.precision=bf16 track.log_every=2"},
        Setting{"TwoRanksBf16Accumulating", 2, At::some_steps,
                "training.precision=bf16 training.grad_accumulation_steps=4"},
        Setting{"TwoRanksFp16", 2, At::every_step,
                "training.precision=fp16 loss_scale.init_scale=2097152 loss_scale.growth_interval=2"},
        Setting{"TwoRanksFp64Sgd", 2, At::some_steps,
                "optimizer.type=SGD optimizer.momentum=0.9 training.max_grad_norm=0.1"},
        Setting{"TwoRanksTokenBudget", 2, At::every_step,
                "training.global_batch_size=null training.max_tokens=40 training.grad_accumulation_steps=2"},
        Setting{"TwoRanksOneDnn", 2, At::some_steps, "training.precision=fp32 training.products=onednn"},
        Setting{"TwoRanksShardedOwnProducts", 2, At::some_steps,
                "training.precision=bf16 training.products=stretto training.strategy=fsdp"},
        Setting{"TwoPairsReferenceKernels", 4, At::some_steps,
                "training.precision=fp32 training.kernels=reference training.mesh.tp=2"},
        Setting{"TwoRanksGlooSynchronousSaves", 2, At::some_steps,
                "training.precision=fp32 training.backend=gloo checkpoint.async=false"},
        Setting{"TwoRanksOfEachLayer", 2, At::some_steps,
                "training.precision=fp32 training.mesh.tp=2 ema.decay=0.9"},
        Setting{"FourRanksOfEachLayer", 4, At::some_steps,
                "training.precision=fp32 training.mesh.tp=4 training.mesh.sequence_parallel=true"},
        Setting{"FourRanksOnAMesh", 4, At::some_steps,
                "training.precision=bf16 training.mesh.tp=2 training.strategy=fsdp optimizer.type=Adafactor"},
        Setting{"ThreeRanksConstantRateUnshuffled", 3, At::some_steps,
                "scheduler.type=Constant scheduler.warmup_ratio=null training.shuffle=false"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Resume, OtherWorldSizesAndBatchSizesContinueAtTheSameSample) {
  workspace_.write("train.tsv", make_rows(87, 3));
  const std::string settings =
      "training.epochs=2 checkpoint.every=2 checkpoint.keep_last=0 evaluate.every=never ";
  workspace_.train("whole", 2, settings);
  const auto from = [&](int step) { return settings + "resume=" + checkpoint("whole", step); };

  workspace_.train("one", 1, from(4));
  std::vector<double> rest = workspace_.losses("whole");
  rest.erase(rest.begin(), rest.begin() + 4);
  EXPECT_LT(relative_difference(workspace_.losses("one"), rest), 1e-9);

  // After 64 samples, 23 samples remain in the first epoch, in batches of 5, and 87 in the second.
  workspace_.train("smaller", 2, from(4) + " training.global_batch_size=5");
  const auto summary = nlohmann::json::parse(workspace_.read("smaller/summary.json"));
  EXPECT_EQ(summary["samples"], 23 + 87);
  EXPECT_EQ(summary["steps"], 4 + 5 + 18);

  // A second stop after that does not change where the run ends.
  workspace_.train("again", 2, settings + "training.global_batch_size=5 resume=" + checkpoint("smaller", 20));
  EXPECT_EQ(newest("again"), 27);
  expect_same(state_of("again", 27), state_of("smaller", 27));

  // The run continues with 16, from the middle of the batches of 5.
  ASSERT_TRUE(workspace_.has("smaller/checkpoints"));
  workspace_.train("back", 1, settings + "resume=" + checkpoint("smaller", 6));
  EXPECT_EQ(nlohmann::json::parse(workspace_.read("back/summary.json"))["samples"], 13 + 87);
}

TEST_F(Resume, MatmulsUseTheLibrariesOfTheCheckpoint) {
  const std::string settings =
      "training.precision=fp32 training.max_steps=6 checkpoint.every=3 checkpoint.keep_last=0 evaluate.every=never";
  workspace_.train("whole", 1, settings + " training.products=onednn");
  const nlohmann::json products =
      checkpoint_format::read_manifest(checkpoint("whole", 3)).scalars.at("products");
  if (products.at("forward") != "onednn") GTEST_SKIP() << "this libtorch has no oneDNN";
  const std::string resumed = settings + " resume=" + checkpoint("whole", 3);
  EXPECT_THAT(workspace_.train("rest", 1, resumed),
              HasSubstr("matmul     onednn (fp32, as in the run that is resumed)"));
  expect_same(state_of("rest", 6), state_of("whole", 6));
  EXPECT_THAT(workspace_.train("other", 1, resumed + " training.products=aten"),
              AllOf(HasSubstr("matmul     aten (fp32, training.products)"),
                    has_all("forward matmuls ", "by onednn", "now computed by aten")));
}

class ResumeUnder : public Resume, public ::testing::WithParamInterface<std::tuple<std::string, int, int>> {};

// The first number is that of the runs' ranks; the second is that of a run that resumes from another
// strategy.
TEST_P(ResumeUnder, AnotherStrategyContinuesTheSameRun) {
  const auto& [strategy, ranks, other_ranks] = GetParam();
  const std::string sharded = " training.strategy=" + strategy;
  for (const std::string precision : {"fp64", "bf16"}) {
    const std::string given =
        "training.max_steps=8 checkpoint.every=2 checkpoint.keep_last=0 evaluate.every=never "
        "training.precision=" +
        precision + " ";
    workspace_.train(precision + "-ddp", 2, given);
    workspace_.train(precision + "-whole", ranks, given + sharded);
    const auto from = [&](const std::string& run) {
      return given + "resume=" + checkpoint(precision + run, 4);
    };
    std::vector<double> rest = workspace_.losses(precision + "-ddp");
    rest.erase(rest.begin(), rest.begin() + 4);
    const double tolerance = precision == "fp64" ? 1e-9 : 0.05;
    workspace_.train(precision + "-sharded", other_ranks, from("-ddp") + sharded);
    EXPECT_LT(relative_difference(workspace_.losses(precision + "-sharded"), rest), tolerance);
    workspace_.train(precision + "-replicated", 1, from("-whole"));
    EXPECT_LT(relative_difference(workspace_.losses(precision + "-replicated"), rest), tolerance);
    workspace_.train(precision + "-other", 2,
                     from("-whole") + " training.strategy=zero1 training.shared_parameters=off");
    EXPECT_LT(relative_difference(workspace_.losses(precision + "-other"), rest), tolerance);

    // The same world size and strategy give the same bits.
    workspace_.train(precision + "-again", ranks, from("-whole") + sharded);
    expect_same(state_of(precision + "-again", 8), state_of(precision + "-whole", 8));
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, ResumeUnder,
                         ::testing::Values(std::tuple{"zero1", 2, 3}, std::tuple{"zero2", 2, 3},
                                           std::tuple{"fsdp", 2, 3},
                                           std::tuple{"hsdp training.dp_shard=2", 4, 6}),
                         [](const auto& info) {
                           const std::string& settings = std::get<0>(info.param);
                           return settings.substr(0, settings.find(' '));
                         });

TEST_F(Resume, OtherTokenBudgetsContinueAtTheSameSample) {
  workspace_.write("train.tsv", make_rows(87, 3));
  const std::string settings =
      "training.global_batch_size=null training.epochs=2 checkpoint.every=2 checkpoint.keep_last=0 evaluate.every=never ";
  workspace_.train("whole", 2, settings + "training.max_tokens=60");
  const auto position = checkpoint_format::read_manifest(checkpoint("whole", 2)).scalars.at("place");
  ASSERT_EQ(position.at("epoch"), 0);
  const int64_t left = 87 - position.at("samples").get<int64_t>() + 87;
  const auto samples_with = [&](const std::string& run, int ranks, const std::string& sizes) {
    workspace_.train(run, ranks, settings + "resume=" + checkpoint("whole", 2) + " " + sizes);
    return nlohmann::json::parse(workspace_.read(run + "/summary.json")).at("samples");
  };
  EXPECT_EQ(samples_with("smaller", 2, "training.max_tokens=45"), left);
  EXPECT_EQ(samples_with("one", 1, "training.max_tokens=60"), left);
  EXPECT_EQ(samples_with("counted", 2, "training.global_batch_size=5"), left);
}

// Steps are faster than the disk: some saves are skipped, but never the last.
TEST_F(Resume, TheLastSaveIsNeverSkipped) {
  workspace_.train(
      "run", 2,
      "training.precision=fp32 training.max_steps=25 evaluate.every=never checkpoint.every=1 checkpoint.when_busy=skip");
  EXPECT_EQ(newest("run"), 25);
}

// ---- what cannot be resumed

class ResumeRefused : public Resume {
 protected:
  void SetUp() override { workspace_.train("run", 1, settings_); }
  void expect_refusal(const std::string& settings, const ::testing::Matcher<const std::string&>& message,
                      const std::string& run = "run") const {
    EXPECT_THAT(workspace_.refusal_of(run, 1, settings_ + settings), message);
  }
  void damage(int step) const {
    const std::string file = checkpoint("run", step) + "/rank-00000.safetensors";
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_file_atomic(file, bytes);
  }

  const std::string settings_ =
      "training.precision=fp32 training.max_steps=4 checkpoint.every=2 evaluate.every=never ";
};

TEST_F(ResumeRefused, OtherData) {
  workspace_.write("train.tsv", make_rows(60, 1));
  expect_refusal("", has_all("data.train holds 60 samples here", "64 in the run"));
}

TEST_F(ResumeRefused, OtherLabelsOfEqualData) {
  std::string rows = workspace_.read("train.tsv");
  const size_t label = rows.find('\n', rows.find('\n') + 1) - 1;
  rows[label] = rows[label] == '0' ? '1' : '0';
  workspace_.write("train.tsv", rows);
  expect_refusal("", has_all("number of samples (64) is equal", "texts, tokens or labels differ"));
}

TEST_F(ResumeRefused, OtherLabelsOfEqualValidationData) {
  const std::string evaluated = settings_ + "evaluate.every=2 ";
  workspace_.train("evaluated", 1, evaluated + "training.steps_this_run=2");
  std::string rows = workspace_.read("dev.tsv");
  const size_t label = rows.find('\n', rows.find('\n') + 1) - 1;
  rows[label] = rows[label] == '0' ? '1' : '0';
  workspace_.write("dev.tsv", rows);
  expect_refusal("evaluate.every=2",
                 has_all("the validation data is not the data of the run", "number of samples (23)"),
                 "evaluated");
  EXPECT_THAT(workspace_.train("evaluated", 1, evaluated + "checkpoint.accept_changes=[data.validation]"),
              HasSubstr("compare scores of both"));
}

TEST_F(ResumeRefused, AnotherDropoutInConfigJson) {
  auto config = nlohmann::json::parse(workspace_.read("model/config.json"));
  const std::string before = config.value("hidden_dropout_prob", nlohmann::json()).dump();
  config["hidden_dropout_prob"] = 0.375;
  workspace_.write("model/config.json", config.dump());
  expect_refusal("", HasSubstr("hidden_dropout_prob: " + before + " in the checkpoint, now 0.375"));
}

TEST_F(ResumeRefused, AnotherVocabulary) {
  std::string words = workspace_.read("model/vocab.txt");
  words.replace(words.find("clumsy"), 6, "clumsz");
  workspace_.write("model/vocab.txt", words);
  expect_refusal("", HasSubstr("data.train is not the data of the run"));
}

TEST_F(ResumeRefused, ImpossibleManifests) {
  const std::string file = checkpoint("run", 4) + "/manifest.json";
  checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint("run", 4));
  manifest.scalars["place"]["samples"] = INT64_MAX;
  write_file_atomic(file, checkpoint_format::to_text(manifest));
  EXPECT_THAT(message_of<DataError>([&] { checkpoint_format::verify(checkpoint("run", 4)); }),
              HasSubstr("place.samples"));
  manifest.scalars.erase("place");
  write_file_atomic(file, checkpoint_format::to_text(manifest));
  expect_refusal("training.max_steps=6 checkpoint.accept_changes=[training.max_steps]",
                 HasSubstr("has no scalar \"place\""));
}

TEST_F(ResumeRefused, AnotherModel) {
  auto config = nlohmann::json::parse(workspace_.read("model/config.json"));
  config["intermediate_size"] = 40;
  workspace_.write("model/config.json", config.dump());
  expect_refusal(
      "", AllOf(HasSubstr("tensor model.bert.encoder.layer.0.intermediate.dense.weight is [48, 32] there"),
                HasSubstr("[40, 32] here")));
}

TEST_F(ResumeRefused, SettingsThatTheRecipeExcludes) {
  expect_refusal("resume=false", AllOf(HasSubstr("holds checkpoints of an earlier run, up to step 4"),
                                       HasSubstr("checkpoints rm")));
  expect_refusal("resume=true", HasSubstr("there is no checkpoint in " + path("other/checkpoints")), "other");
  expect_refusal("resume=" + checkpoint("run", 2), HasSubstr("holds checkpoints of later steps, up to 4"));
  expect_refusal("resume=" + path("absent"), HasSubstr(path("absent") + " does not exist"));
  expect_refusal("resume=" + path("run"),
                 HasSubstr(path("run") + " is no checkpoint: it has no manifest.json; did you mean " +
                           checkpoint("run", 4)));
  expect_refusal("resume=" + path("model"),
                 HasSubstr("a folder checkpoints/step-<number> of a run is expected"));
}

TEST_F(ResumeRefused, AFinishedRunIsNotChanged) {
  const std::string weights = workspace_.read("run/model/model.safetensors");
  EXPECT_THAT(workspace_.train("run", 1, settings_), HasSubstr("resumed    after step 4"));
  EXPECT_EQ(workspace_.read("run/model/model.safetensors"), weights);
  EXPECT_THAT(workspace_.losses("run"), SizeIs(4));
}

TEST_F(ResumeRefused, DamagedCheckpointsAreNamedAndAnOlderOneIsUsed) {
  damage(4);
  EXPECT_THAT(workspace_.train("run", 1, settings_),
              AllOf(HasSubstr("the checkpoint of step 4 cannot be used: " + checkpoint("run", 4)),
                    HasSubstr(" is damaged"), HasSubstr("resumed    after step 2")));
  damage(2);
  damage(4);
  expect_refusal("", HasSubstr("none of the 2 checkpoints can be used"));
}

TEST_F(ResumeRefused, MissingFilesAndNewerFormatsAreNamed) {
  std::filesystem::remove(checkpoint("run", 4) + "/rank-00000.safetensors");
  const std::string manifest = checkpoint("run", 2) + "/manifest.json";
  std::string text = read_file(manifest);
  text.replace(text.find("\"format_version\":1"), 18, "\"format_version\":9");
  write_file_atomic(manifest, text);
  expect_refusal("", AllOf(HasSubstr("rank-00000.safetensors: the file is missing"),
                           HasSubstr("format 9 is newer than 1")));
}

}  // namespace
}  // namespace stretto
