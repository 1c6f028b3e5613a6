#include "tests/train/workspace.h"
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "stretto/base/fd.h"

// A refused run leaves no files in a new output folder.
namespace stretto {
namespace {

using ::testing::HasSubstr;

class Refused : public ::testing::Test {
 protected:
  Refused() { workspace_.write("broken.tsv", "sentence\tlabel\ngood\t1\nbad\n"); }

  std::string command(int ranks, const std::string& settings) const {
    return workspace_.command("train", ranks, "output=" + workspace_.path("runs/new") + " " + settings);
  }
  void expect_nothing_left(const std::string& command, const std::string& message) const {
    const ShellResult result = shell(command);
    EXPECT_NE(result.exit_code, 0) << command;
    EXPECT_THAT(result.err, HasSubstr(message)) << command;
    EXPECT_FALSE(workspace_.has("runs")) << command;
    std::filesystem::remove_all(workspace_.path("runs"));
  }

  const Workspace workspace_;
};

TEST_F(Refused, WhetherByTheLauncherOrByRanks) {
  const std::string alone = torchrun_variables(0, 1);
  for (const auto& [settings, message] : std::vector<std::pair<std::string, std::string>>{
           {"optimizer.type=AdamX", "AdamX"},
           {"data.train=" + workspace_.path("absent.tsv"), "absent.tsv does not exist"},
           {"data.train=" + workspace_.path("broken.tsv"), "broken.tsv:3"},
           {"data.max_length=33", "data.max_length"},
           {"resume=true data.train=" + workspace_.path("broken.tsv"), "there is no checkpoint"},
           {"checkpoint.monitor=acuracy", "acuracy"},
           {"checkpoint.save_models=[best_quality]", "best_quality"}}) {
    expect_nothing_left(command(2, settings), message);
    expect_nothing_left(alone + command(1, settings), message);
  }
}

TEST_F(Refused, WithTheOptionsOfSeveralHosts) {
  const std::string hosts = command(1, "") + " --nodes 2 --node-rank 0 --master-addr 127.0.0.1 ";
  expect_nothing_left(hosts + "--secret-file " + workspace_.path("absent"), "absent");
  expect_nothing_left("export STRETTO_SECRET_FILE=" + workspace_.path("absent") + "; " + hosts, "absent");

  const Fd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  expect_nothing_left(hosts + "--master-port " + port, "--master-port " + port);
}

// The token ids are cached for the next attempt, which finds nothing else there.
TEST_F(Refused, AfterItsDataWereRead) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ShellResult result =
        shell(command(2, "parameters.freeze=[nothing] data.cache=" + workspace_.path("runs/new/cache")));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(workspace_.path("runs/new")))
      left.push_back(entry.path().filename());
    EXPECT_THAT(left, ::testing::ElementsAre("cache"));
  }
}

}  // namespace
}  // namespace stretto
