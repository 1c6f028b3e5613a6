#include "stretto/launch/hosts/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/process.h"
#include "stretto/base/temp_folder.h"

namespace stretto::launch {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::vector<ListedHost>& hosts) {
  std::string text;
  for (const ListedHost& host : hosts) text += fmt::format("{}={} ", host.name, host.ranks);
  return text;
}

class Hostfile : public ::testing::Test {
 protected:
  std::vector<ListedHost> read(const std::string& content) const {
    write_file_atomic(folder_.path() / "hosts.txt", content);
    return read_hostfile(folder_.path() / "hosts.txt");
  }
  std::string refused(const std::string& content) const {
    return message_of<ConfigError>([&] { read(content); });
  }
  TempFolder folder_;
};

TEST(HostList, NamesHaveNumbersOfRanks) {
  EXPECT_EQ(text_of(parse_hosts("a")), "a=0 ");
  EXPECT_EQ(text_of(parse_hosts("a, b:4,me@10.0.0.7:2")), "a=0 b=4 me@10.0.0.7=2 ");
  EXPECT_EQ(text_of(parse_hosts("[fd77::1]:4,fd77::2,me@[fd77::3]")), "fd77::1=4 fd77::2=0 me@fd77::3=0 ");
  EXPECT_EQ(parse_hosts("me@[fd77::3]:2")[0].address(), "fd77::3");
}

TEST(HostList, AHostThatIsListedAgainHasMoreRanks) {
  EXPECT_EQ(text_of(parse_hosts("a,b,a,a")), "a=3 b=0 ");
  EXPECT_EQ(text_of(parse_hosts("a:2,b:1,a:3")), "a=5 b=1 ");
}

TEST(HostList, MistakesAreNamed) {
  EXPECT_THAT(message_of<ConfigError>([] { parse_hosts("a,,b"); }),
              HasSubstr("--hosts: \"a,,b\": a name is missing"));
  EXPECT_THAT(message_of<ConfigError>([] { parse_hosts("a:0"); }),
              has_all("--hosts: \"a:0\": ", "number of ranks", "1 .. 4096"));
  EXPECT_THAT(message_of<ConfigError>([] { parse_hosts("a:x"); }), HasSubstr("\"a:x\": the number of ranks"));
  EXPECT_THAT(message_of<ConfigError>([] { parse_hosts("a b"); }),
              HasSubstr("\"a b\" is not the name or address of a host"));
  EXPECT_THAT(message_of<ConfigError>([] { parse_hosts("[fd77::1"); }),
              HasSubstr("expected [ADDRESS] or [ADDRESS]:RANKS"));
  for (const char* name : {"-oProxyCommand=x", "a;b", "$(id)", "@a", "me@"})
    EXPECT_THAT(message_of<ConfigError>([&] { parse_hosts(name); }),
                HasSubstr("is not the name or address of a host"))
        << name;
}

TEST_F(Hostfile, TakesTheFormsOfOtherLaunchers) {
  EXPECT_EQ(text_of(read("# the cluster\nnode-a slots=4\n\n  node-b slots=2 max_slots=8 # slow\nnode-c\n")),
            "node-a=4 node-b=2 node-c=0 ");
  EXPECT_EQ(text_of(read("node-a:4\r\nnode-b:2\r\n")), "node-a=4 node-b=2 ");
  EXPECT_EQ(text_of(read("node-a\nnode-a\nnode-b\nnode-b")), "node-a=2 node-b=2 ");
}

TEST_F(Hostfile, MistakesHaveALine) {
  EXPECT_THAT(refused("node-a slots=4\nnode-b slot=4\n"),
              has_all("hosts.txt:2: \"slot=4\"", "not known", "as in node-b slots=4"));
  EXPECT_THAT(refused("node-a slots=four\n"),
              has_all("hosts.txt:1: \"slots=four\": ", "number of ranks", "1 .. 4096"));
  EXPECT_THAT(refused("node-a:2 slots=2\n"), has_all("hosts.txt:1: ", "node-a", "given twice"));
  EXPECT_THAT(refused("\n\nnode-a, node-b\n"), HasSubstr("hosts.txt:3: \"node-a,\" is not the name"));
  EXPECT_THAT(refused("# nothing\n"), HasSubstr("hosts.txt: the file names no host"));
}

TEST(HostList, ThisHostIsKnownByItsNames) {
  EXPECT_TRUE(is_this_host("localhost"));
  EXPECT_TRUE(is_this_host(host_name()));
  EXPECT_TRUE(is_this_host("127.0.0.1"));
  EXPECT_FALSE(is_this_host("198.51.100.1"));
  EXPECT_FALSE(is_this_host("no-such-host.invalid"));
}

}  // namespace
}  // namespace stretto::launch
