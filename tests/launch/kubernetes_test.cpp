#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/socket.h"

// Tests the manifests in deploy/kubernetes: each pod's command line runs with the variables of Kubernetes and
// Kubeflow, in two launchers on this host.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<YAML::Node> documents(const std::string& name) {
  return YAML::LoadAllFromFile(std::string(DEPLOY_FOLDER) + "/kubernetes/" + name);
}

std::vector<std::string> words_of(const YAML::Node& container) {
  auto words = container["command"].as<std::vector<std::string>>();
  for (const YAML::Node& word : container["args"]) words.push_back(word.as<std::string>());
  return words;
}

class Kubernetes : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomic(folder_.path() / "secret", "s3cret\n");
    std::filesystem::permissions(folder_.path() / "secret",
                                 std::filesystem::perms(0440));  // as with fsGroup
    port_ = cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).port;
  }
  // The pod's command in a shell on this host, for a program that shows the ranks instead of a recipe.
  std::string command(const YAML::Node& pod, const std::string& master) const {
    const YAML::Node container = pod["containers"][0];
    const std::vector<std::string> words = words_of(container);
    EXPECT_EQ(words[0], "stretto");
    EXPECT_EQ(words[1], "train");
    EXPECT_EQ(words[2], "/job/recipe.yaml");
    std::string text = STRETTO_PROGRAM " launch --join-timeout 60";
    for (size_t i = 3; i < words.size(); ++i) {
      std::string word = words[i] == "/secret/secret" ? (folder_.path() / "secret").string() : words[i];
      if (word == master) word = "127.0.0.1";
      text += " " + shell_word(word);
    }
    return text + " -- sh -c 'echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK on host $GROUP_RANK'";
  }
  // `variables`: the variables of each pod.
  void expect_eight_ranks(const std::vector<std::string>& variables, const std::string& command) const {
    BackgroundShell first("env " + variables[0] + " " + command),
        second("env " + variables[1] + " " + command);
    const ShellResult one = first.wait(), two = second.wait();
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(two.exit_code, 0) << two.err;
    EXPECT_THAT(one.out, AllOf(HasSubstr("rank 0 of 8, 0 on host 0"), HasSubstr("rank 3 of 8, 3 on host 0")));
    EXPECT_THAT(two.out, AllOf(HasSubstr("rank 4 of 8, 0 on host 1"), HasSubstr("rank 7 of 8, 3 on host 1")));
    EXPECT_THAT(one.err, ::testing::Not(HasSubstr("warning"))) << one.err;
  }
  static void expect_safe(const YAML::Node& pod) {
    EXPECT_TRUE(pod["securityContext"]["runAsNonRoot"].as<bool>());
    EXPECT_FALSE(pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"].as<bool>());
    EXPECT_GT(pod["terminationGracePeriodSeconds"].as<int>(), 60) << "of --grace";
    EXPECT_THAT(words_of(pod["containers"][0]), ::testing::Contains("--stop-exit-code"));
    EXPECT_EQ(pod["volumes"][1]["secret"]["defaultMode"].as<std::string>(), "0440");
  }
  TempFolder folder_;
  int port_ = 0;
};

TEST_F(Kubernetes, AnIndexedJob) {
  const auto parts = documents("indexed-job.yaml");
  ASSERT_EQ(parts.size(), 2u);
  const YAML::Node &service = parts[0], &job = parts[1];
  const YAML::Node spec = job["spec"], pod = spec["template"]["spec"];
  const auto name = job["metadata"]["name"].as<std::string>();
  const auto service_name = service["metadata"]["name"].as<std::string>();
  EXPECT_EQ(spec["completionMode"].as<std::string>(), "Indexed");
  EXPECT_EQ(spec["completions"].as<int>(), spec["parallelism"].as<int>());
  EXPECT_EQ(pod["subdomain"].as<std::string>(), service_name);
  EXPECT_EQ(service["spec"]["clusterIP"].as<std::string>(), "None");
  EXPECT_TRUE(service["spec"]["publishNotReadyAddresses"].as<bool>());
  EXPECT_EQ(service["spec"]["selector"]["batch.kubernetes.io/job-name"].as<std::string>(), name);
  expect_safe(pod);
  const auto words = words_of(pod["containers"][0]);
  const std::string master = name + "-0." + service_name;
  EXPECT_THAT(words, ::testing::Contains(master));
  EXPECT_EQ(*std::next(std::ranges::find(words, "--nodes")), spec["completions"].as<std::string>());
  const std::string job_command = command(pod, master);
  const std::string port = fmt::format("MASTER_PORT={} ", port_);
  expect_eight_ranks({port + "JOB_COMPLETION_INDEX=0", port + "JOB_COMPLETION_INDEX=1"}, job_command);
}

TEST_F(Kubernetes, APyTorchJob) {
  const auto parts = documents("pytorchjob.yaml");
  ASSERT_EQ(parts.size(), 1u);
  const YAML::Node spec = parts[0]["spec"], replicas = spec["pytorchReplicaSpecs"];
  const YAML::Node pod = replicas["Master"]["template"]["spec"];
  EXPECT_EQ(replicas["Master"]["replicas"].as<int>() + replicas["Worker"]["replicas"].as<int>(), 2);
  EXPECT_EQ(pod["containers"][0]["name"].as<std::string>(), "pytorch");
  expect_safe(pod);
  expect_safe(replicas["Worker"]["template"]["spec"]);
  std::vector<std::string> variables;
  for (const int index : {0, 1}) {
    variables.push_back(fmt::format(
        "PET_NNODES=2 PET_NODE_RANK={} PET_NPROC_PER_NODE={} PET_MASTER_ADDR=127.0.0.1 PET_MASTER_PORT={} "
        "RANK={} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={}",
        index, spec["nprocPerNode"].as<std::string>(), port_, index, port_));
  }
  expect_eight_ranks(variables, command(pod, ""));
}

TEST_F(Kubernetes, ATrainJob) {
  const auto parts = documents("trainjob.yaml");
  ASSERT_EQ(parts.size(), 2u);
  const YAML::Node policy = parts[0]["spec"]["mlPolicy"];
  const YAML::Node node = parts[0]["spec"]["template"]["spec"]["replicatedJobs"][0];
  const YAML::Node pod = node["template"]["spec"]["template"]["spec"];
  EXPECT_EQ(parts[1]["spec"]["runtimeRef"]["name"].as<std::string>(),
            parts[0]["metadata"]["name"].as<std::string>());
  EXPECT_EQ(node["name"].as<std::string>(), "node");
  EXPECT_EQ(pod["containers"][0]["name"].as<std::string>(), "node");
  expect_safe(pod);
  std::vector<std::string> variables;
  for (const int index : {0, 1}) {
    variables.push_back(fmt::format(
        "PET_NNODES={} PET_NODE_RANK={} PET_NPROC_PER_NODE={} PET_MASTER_ADDR=127.0.0.1 PET_MASTER_PORT={}",
        policy["numNodes"].as<int>(), index, parts[1]["spec"]["trainer"]["numProcPerNode"].as<int>(), port_));
  }
  expect_eight_ranks(variables, command(pod, ""));
}

}  // namespace
}  // namespace stretto
