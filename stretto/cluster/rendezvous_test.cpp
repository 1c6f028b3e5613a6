#include "stretto/cluster/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/cluster/store_client.h"
#include "stretto/cluster/store_server.h"

namespace stretto::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr uid_t other_user = 65534;

RankInfo on_hosts(int hosts) {
  return {.world_size = 2 * hosts,
          .local_world_size = 2,
          .launched = true,
          .master_addr = "127.0.0.1",
          .master_port = 29500};
}

RankInfo changed(RankInfo info, const std::function<void(RankInfo&)>& change) {
  change(info);
  return info;
}

const auto agent = [](RankInfo& info) { info.agent_store = true; };
const auto secret = [](RankInfo& info) { info.secret = "s"; };

// Starts `body` in a process of another user. Call it before threads are started: a child has the locks that
// they hold.
pid_t start_as_other_user(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool changed = ::setgid(other_user) == 0 && ::setuid(other_user) == 0;
    ::_exit(changed ? body() : 99);
  }
  return child;
}

int exit_code(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

Endpoint unix_endpoint(const char* name) { return {fmt::format("@stretto-test-{}-{}", name, ::getpid()), 0}; }

TEST(Rendezvous, FollowsTheHostsTheAgentAndTheSecret) {
  EXPECT_EQ(rendezvous_of(changed(on_hosts(2),
                                  [](RankInfo& info) {
                                    info.store = Endpoint{"a", 1};
                                  })),
            Rendezvous::launcher_store);
  EXPECT_EQ(rendezvous_of(on_hosts(1)), Rendezvous::local_socket);
  EXPECT_EQ(rendezvous_of(changed(on_hosts(1), agent)), Rendezvous::local_socket);
  EXPECT_EQ(rendezvous_of(changed(on_hosts(1), secret)), Rendezvous::local_socket);
  EXPECT_EQ(rendezvous_of(on_hosts(2)), Rendezvous::open);
  EXPECT_EQ(rendezvous_of(changed(on_hosts(2), secret)), Rendezvous::secret);
  EXPECT_EQ(rendezvous_of(changed(on_hosts(2), agent)), Rendezvous::agent_open);
  EXPECT_EQ(rendezvous_of(changed(changed(on_hosts(2), agent), secret)), Rendezvous::agent_secret);
}

TEST(Rendezvous, OnlyAnOpenStoreIsWarnedOf) {
  const RankInfo info = on_hosts(2);
  for (const Rendezvous rendezvous :
       {Rendezvous::launcher_store, Rendezvous::local_socket, Rendezvous::secret, Rendezvous::agent_secret}) {
    EXPECT_EQ(exposure(rendezvous, info), "");
  }
  for (const Rendezvous rendezvous : {Rendezvous::open, Rendezvous::agent_open}) {
    EXPECT_THAT(exposure(rendezvous, info),
                AllOf(HasSubstr("127.0.0.1:29500"), HasSubstr("has no authentication"),
                      HasSubstr("set STRETTO_SECRET or STRETTO_SECRET_FILE")));
  }
}

TEST(Rendezvous, JobsOfOneHostUseDifferentSockets) {
  const auto socket = [](const RankInfo& info) {
    return store_endpoint(Rendezvous::local_socket, info).text();
  };
  const RankInfo info = on_hosts(1);
  EXPECT_THAT(socket(info), HasSubstr(fmt::format("@stretto-{}-29500-", ::geteuid())));
  EXPECT_EQ(socket(info), socket(changed(info, [](RankInfo& other) { other.rank = 1; })));
  EXPECT_NE(socket(info), socket(changed(info, [](RankInfo& other) { other.master_port = 29501; })));
  EXPECT_NE(socket(info), socket(changed(info, [](RankInfo& other) { other.restart_count = 1; })));
}

TEST(Rendezvous, RankZeroListensOnTheAddressOfMasterAddrOnly) {
  EXPECT_EQ(listening_endpoint(Rendezvous::open, on_hosts(2)).text(), "127.0.0.1:29500");
  const RankInfo named =
      changed(on_hosts(2), [](RankInfo& info) { info.master_addr = "no.such.host.invalid"; });
  EXPECT_THROW(listening_endpoint(Rendezvous::open, named), DistributedError);
}

TEST(Rendezvous, APublishedAddressIsAcceptedWithTheSecret) {
  const std::string published = sign_endpoint({"::1", 4000}, "secret", "life 0");
  EXPECT_EQ(verify_endpoint(published, "secret", "life 0").text(), "[::1]:4000");
  for (const std::string& forged :
       {std::string("[::1]:4000"), std::string(), sign_endpoint({"::1", 4000}, "other", "life 0"),
        sign_endpoint({"::1", 4000}, "secret", "life 1"), "[::1]:4001" + published.substr(10)}) {
    EXPECT_THROW(verify_endpoint(forged, "secret", "life 0"), DistributedError) << forged;
  }
}

TEST(UnixStore, ServesThisUser) {
  const StoreServer server(bind_socket(unix_endpoint("own")), "no secret");
  EXPECT_EQ(server.endpoint().text(), unix_endpoint("own").text());
  StoreClient a(server.endpoint(), "no secret"), b(server.endpoint(), "no secret");
  a.set("k", "v");
  EXPECT_EQ(b.get("k", 5s), "v");
}

TEST(UnixStore, RefusesOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run a process of another user";
  Fd socket = bind_socket(unix_endpoint("server"));
  const Endpoint endpoint = bound_endpoint(socket);
  int started[2];
  ASSERT_EQ(::pipe(started), 0);
  const pid_t child = start_as_other_user([&] {
    char byte = 0;
    if (::read(started[0], &byte, 1) != 1) return 2;
    try {
      StoreClient client(endpoint, "no secret", {.connect_timeout = 5s});
      client.set("hosts.1", "forged");
      return 1;
    } catch (const DistributedError&) {
      return 0;
    }
  });
  const StoreServer server(std::move(socket), "no secret");
  ASSERT_EQ(::write(started[1], "x", 1), 1);
  EXPECT_EQ(exit_code(child), 0);
  StoreClient client(endpoint, "no secret");
  EXPECT_FALSE(client.check({"hosts.1"}));
}

// Another user has bound the name first.
TEST(UnixStore, AClientTrustsNoOtherUsersServer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run a process of another user";
  const Endpoint taken = unix_endpoint("taken");
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready) + ::pipe(done), 0);
  const pid_t server = start_as_other_user([&] {
    const Fd socket = bind_socket(taken);
    char byte = 0;
    const bool listens = ::listen(socket.get(), 1) == 0 && ::write(ready[1], "x", 1) == 1;
    return listens && ::read(done[0], &byte, 1) == 1 ? 0 : 1;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  try {
    connect_socket(taken, Clock::now() + 5s);
    ADD_FAILURE() << "trusted";
  } catch (const DistributedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("user 65534 listens there"), HasSubstr("another MASTER_PORT")));
  }
  ASSERT_EQ(::write(done[1], "x", 1), 1);
  EXPECT_EQ(exit_code(server), 0);
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
}

TEST(UnixStore, ANameThatIsTakenIsRefused) {
  const Fd first = bind_socket(unix_endpoint("twice"));
  EXPECT_THROW(bind_socket(unix_endpoint("twice")), IoError);
}

TEST(UnixStore, ALongNameIsRefused) { EXPECT_THROW(bind_socket({"@" + std::string(200, 'x'), 0}), IoError); }

}  // namespace
}  // namespace stretto::cluster
