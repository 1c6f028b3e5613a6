#include <set>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Plan, ComparesTheStrategiesWithoutTouchingTheRun) {
  const Workspace workspace;
  const std::string command = workspace.command("plan", 2, "training.epochs=20 training.precision=fp32");
  const ShellResult json = shell(command + " --steps 2 --json");
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto plan = nlohmann::json::parse(json.out);
  EXPECT_EQ(plan.at("ranks"), 2);
  std::map<std::string, nlohmann::json> rows;
  for (const auto& row : plan.at("strategies")) rows[row.at("strategy")] = row;
  ASSERT_THAT(rows, ::testing::SizeIs(4)) << "ddp, zero1, zero2, fsdp";
  const auto elements = plan.at("trainable_parameters").get<int64_t>();
  EXPECT_EQ(rows.at("ddp").at("optimizer"), 8 * elements);
  EXPECT_NEAR(rows.at("zero1").at("optimizer").get<double>(), 4.0 * static_cast<double>(elements), 64);
  EXPECT_LT(rows.at("zero2").at("gradients"), rows.at("zero1").at("gradients"));
  EXPECT_TRUE(rows.contains(plan.at("best").get<std::string>()));
  EXPECT_FALSE(workspace.has("run/plan"));
  EXPECT_FALSE(workspace.has("run/metrics.jsonl"));

  const ShellResult table = shell(command + " --steps 2 --memory 0.001");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(ContainsRegex("zero1 +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB +[0-9.]+ ms"),
                               HasSubstr("does not fit"), HasSubstr("No strategy fits")));
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // what they keep of freed memory would be counted
// A model whose largest activations are those of its inner columns, which ranks can divide.
TEST(Plan, ProposesTheMeshThatFitsIntoMemory) {
  const Workspace workspace;
  workspace.write("model/config.json", R"({"model_type": "bert", "vocab_size": 33, "hidden_size": 64,
    "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 8192, "max_position_embeddings": 32})");
  const std::string settings =
      "training.epochs=20 training.global_batch_size=null training.batch_size=32 training.precision=fp32";
  const std::string command = workspace.command("plan", 2, settings);
  const auto plan = [&](const std::string& more) {
    const ShellResult result = shell(command + " --steps 2 --json " + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const auto least = [](const nlohmann::json& plan) {
    double bytes = 1e18;
    for (const auto& row : plan.at("strategies"))
      bytes = std::min(bytes, row.at("bytes_per_host").get<double>());
    return bytes;
  };
  const auto mesh_of = [](int tp, int dp) {
    return nlohmann::json{{"tp", tp}, {"dp", dp}, {"sequence_parallel", false}};
  };
  const nlohmann::json whole = plan(""), divided = plan("--tp 2");
  EXPECT_EQ(whole.at("best_mesh"), mesh_of(1, 2));
  EXPECT_EQ(divided.at("best_mesh"), mesh_of(2, 1));
  EXPECT_NEAR(divided.at("trainable_parameters").get<double>(),
              whole.at("trainable_parameters").get<double>(), 2000)
      << "padding";
  EXPECT_NEAR(divided.at("strategies").at(0).at("optimizer").get<double>(),
              whole.at("strategies").at(0).at("optimizer").get<double>() / 2, 0.1e6)
      << "biases and norms are whole";
  ASSERT_LT(least(divided), 0.85 * least(whole));
  const double between = (least(divided) + least(whole)) / 2 / (1 << 30);
  const ShellResult table = shell(fmt::format("{} --steps 2 --memory {:.4f}", command, between));
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(ContainsRegex("fsdp +[0-9.]+ [KMG]iB.*does not fit"),
                               ContainsRegex("tp 2 +[0-9.]+ [KMG]iB.*<- recommended"),
                               HasSubstr("divides each layer among 2 ranks:\n--tp 2 --strategy")));
  // Where that does not fit, the same mesh with divided rows is tried.
  std::set<bool> divides_rows;
  const nlohmann::json both = plan("--tp 2 --memory 0.001");
  for (const auto& row : both.at("strategies")) {
    EXPECT_EQ(row.at("tp"), 2);
    divides_rows.insert(row.at("sequence_parallel").get<bool>());
  }
  EXPECT_THAT(divides_rows, ::testing::SizeIs(2));
  // Three ranks cannot divide four heads: another number of ranks is proposed.
  const ShellResult none = shell(workspace.command("plan", 3, settings) + " --steps 2 --memory 0.001");
  ASSERT_EQ(none.exit_code, 0) << none.err;
  EXPECT_THAT(none.out, AllOf(HasSubstr("No strategy fits"), HasSubstr("among more ranks:\n-N 4 --tp 2\n"),
                              Not(HasSubstr("ddp tp"))));
}
#endif

TEST(Plan, AnOutputThatCannotBeWrittenIsAnError) {
  const Workspace workspace;
  const ShellResult result =
      shell(workspace.command("plan", 1, "training.precision=fp32") + " --json >/dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write to standard output: No space left on device"));
}

TEST(Plan, PlansDifferBetweenOneAndSeveralHosts) {
  const Workspace workspace;
  const ShellResult result =
      shell(workspace.command("plan", 2, "training.epochs=20 training.precision=fp32") +
            " --nodes 2 --steps 2 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto plan = nlohmann::json::parse(result.out);
  EXPECT_EQ(plan.at("ranks"), 4);
  EXPECT_EQ(plan.at("hosts"), 2);
  ASSERT_THAT(plan.at("strategies"), ::testing::SizeIs(5)) << "hsdp as well";
  for (const auto& row : plan.at("strategies")) EXPECT_GT(row.at("network_seconds"), 0.0) << row;
}

TEST(Plan, RefusesWhatCannotBePlanned) {
  const Workspace workspace;
  for (const auto& [arguments, problem] : {std::pair{"--steps 1", "--steps"},
                                           {"--memory 0", "--memory: \"0\" is not a number above 0"},
                                           {"--memory abc", "--memory: \"abc\" is not a number above 0"},
                                           {"--cores 0", "--cores"},
                                           {"--network -1", "--network"},
                                           {"--reached 0.5", "--reached and --scale are for job scripts"},
                                           {"--reached 40", "\"40\" is not a number above 0, at most 1"},
                                           {"data.max_length=4000", "data.max_length: 4000 exceeds"},
                                           {"training.batch_size=0", "training.batch_size"}}) {
    const ShellResult result =
        shell(workspace.command("plan", 2, "training.precision=fp32") + " " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.err, HasSubstr(problem));
    EXPECT_THAT(result.err, Not(HasSubstr("ended with exit code"))) << "one message per mistake";
    EXPECT_FALSE(workspace.has("run/plan")) << arguments;
  }
}

}  // namespace
}  // namespace stretto
