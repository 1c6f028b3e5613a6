#include "stretto/comm/socket_messages.h"

#include <cstring>
#include <fstream>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/cluster/socket.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/comm/store_handle.h"

// Flow control of messages between hosts, and peers that violate it. tcp_test.cpp tests tags and sizes.
namespace stretto::comm {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Frame = SocketMessages::Frame;

constexpr int64_t mib = int64_t{1} << 20;

GroupOptions tcp_options(std::chrono::milliseconds deadline = 20s) {
  GroupOptions options;
  options.deadline = deadline;
  return options;
}

void run(int ranks, const std::function<void(Group&)>& body) {
  run_rank_threads(ranks, tcp_options(), body, "tcp");
}

Tensor bytes(int64_t count, int value) { return at::full({count}, value, at::kByte); }

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / static_cast<double>(mib);
}

// The receiver waits for the last message first, so that all messages that may be sent ahead have been sent.
TEST(SocketMessages, StayWithTheSenderUntilTheyAreRequested) {
  constexpr int messages = 512;
  constexpr int64_t elements = mib / 8;
  run(2, [](Group& group) {
    Tensor last = at::ones({1});
    if (group.rank() == 0) {
      const Tensor numbers = at::arange(elements + messages);
      std::vector<Work> sends;
      for (int i = 0; i < messages; ++i) sends.push_back(group.send(numbers.slice(0, i, i + elements), 1));
      sends.push_back(group.send(last, 1, /*tag=*/1));
      for (Work& send : sends) send.wait();
      return;
    }
    const double before = resident_mib();
    group.recv(last, 0, /*tag=*/1).wait();
    EXPECT_LT(resident_mib() - before, 64) << "MiB";
    Tensor message = at::zeros({elements}, at::kLong);
    for (int i = 0; i < messages; ++i) {
      group.recv(message, 0).wait();
      EXPECT_EQ(message[0].item<int64_t>(), i);
      EXPECT_EQ(message[-1].item<int64_t>(), i + elements - 1);
    }
  });
}

TEST(SocketMessages, AreReceivedInAnyOrderOfTags) {
  constexpr int tags = 8;
  run(2, [](Group& group) {
    std::vector<Work> sends;
    for (int tag = 0; tag < tags && group.rank() == 0; ++tag)
      sends.push_back(group.send(bytes(6 * mib, tag), 1, tag));
    for (int tag = tags - 1; tag >= 0 && group.rank() == 1; --tag) {
      Tensor message = bytes(6 * mib, 99);
      group.recv(message, 0, tag).wait();
      EXPECT_TRUE(message.equal(bytes(6 * mib, tag)));
    }
    for (Work& send : sends) send.wait();
  });
}

// Every rank sends to every other more than may wait there, before any of them receives.
TEST(SocketMessages, LargeMessagesInBothDirectionsArrive) {
  run(3, [](Group& group) {
    std::vector<Work> sends;
    for (int i = 0; i < 3; ++i) {
      for (const int distance : {1, 2})
        sends.push_back(group.send(bytes(5 * mib, 10 * group.rank() + i), (group.rank() + distance) % 3));
    }
    group.barrier();
    for (const int distance : {1, 2}) {
      const int from = (group.rank() + distance) % 3;
      for (int i = 0; i < 3; ++i) {
        Tensor message = bytes(5 * mib, 99);
        group.recv(message, from).wait();
        EXPECT_TRUE(message.equal(bytes(5 * mib, 10 * from + i)));
      }
    }
    for (Work& send : sends) send.wait();
  });
}

TEST(SocketMessages, AreReceivedFromOneRankWhileAnotherIsNotRead) {
  constexpr int messages = 64;
  run(3, [](Group& group) {
    if (group.rank() == 2)
      for (int i = 0; i < messages; ++i) group.send(bytes(mib, i), 0).wait();
    if (group.rank() == 1) group.send(bytes(1, 7), 0).wait();
    if (group.rank() > 0) return;
    Tensor small = bytes(1, 0), large = bytes(mib, 99);
    group.recv(small, 1).wait();
    EXPECT_EQ(small.item<int>(), 7);
    for (int i = 0; i < messages; ++i) {
      group.recv(large, 2).wait();
      EXPECT_TRUE(large.equal(bytes(mib, i)));
    }
  });
}

TEST(SocketMessages, SendToARankThatLeavesFails) {
  run(2, [](Group& group) {
    group.barrier();
    if (group.rank() == 1) return;
    EXPECT_THAT(message_of<DistributedError>([&] { group.send(bytes(16 * mib, 1), 1).wait(); }),
                has_all("send [16777216] uint8 #0 of group world failed", "rank 1 closed the connection"));
  });
}

TEST(SocketMessages, SendWithoutAReceiveFailsAtTheDeadline) {
  std::promise<void> over;
  run_rank_threads(
      2, tcp_options(500ms),
      [&](Group& group) {
        if (group.rank() == 1) return over.get_future().wait();
        EXPECT_THAT(message_of<DistributedError>([&] { group.send(bytes(16 * mib, 1), 1).wait(); }),
                    HasSubstr("rank 1 has not taken the message until the deadline"));
        over.set_value();
      },
      "tcp");
}

// Messages arrive although announcements are under way to the group that ends.
TEST(SocketMessages, OutliveTheirSendersGroup) {
  for (int turn = 0; turn < 20; ++turn) {
    const bool ask_late = turn % 2 == 0;
    const auto store = memory_store();
    auto sender = std::async(std::launch::async, [&] {
      Group group("tcp", store, 0, 2, tcp_options());
      for (int i = 0; i < 3; ++i) group.send(bytes(mib, i), 1).wait();
    });
    Group group("tcp", store, 1, 2, tcp_options());
    if (ask_late) sender.get();
    std::vector<Tensor> messages;
    std::vector<Work> receives;
    for (int i = 0; i < 3; ++i) {
      messages.push_back(bytes(mib, 99));
      receives.push_back(group.recv(messages.back(), 0));
    }
    for (int i = 0; i < 3; ++i) {
      receives[static_cast<size_t>(i)].wait();
      EXPECT_TRUE(messages[static_cast<size_t>(i)].equal(bytes(mib, i)));
    }
    EXPECT_THAT(message_of<DistributedError>([&] { group.recv(messages[0], 0).wait(); }),
                HasSubstr("rank 0 closed the connection"));
  }
}

// Rank 1 of two, which writes and reads frames by hand.
class RawRank {
 public:
  explicit RawRank(c10d::Store& store)
      : sockets_(store, 1, 2, tcp_options()),
        socket_(::dup(sockets_.fd(0, PeerSockets::Channel::messages))) {}
  void send(const std::string& raw) { cluster::send_all(socket_, rank_0_, raw, deadline_); }
  void send(const Frame& frame) { send({reinterpret_cast<const char*>(&frame), sizeof frame}); }
  Frame receive() {
    const std::string raw = cluster::receive_exactly(socket_, rank_0_, sizeof(Frame), deadline_);
    Frame frame;
    std::memcpy(&frame, raw.data(), sizeof frame);
    return frame;
  }

 private:
  const PeerSockets sockets_;
  const Fd socket_;
  const cluster::Endpoint rank_0_ = {"rank 0", 0};
  const cluster::Clock::time_point deadline_ = cluster::Clock::now() + 20s;
};

Frame message_frame(int tag, uint64_t bytes) { return {Frame::Kind::message, tag, 0, 0, bytes}; }

// The outcome of a receive of 16 bytes with tag 0 at rank 0.
std::string receive_from(const std::function<void(RawRank&)>& forge) {
  const auto store = memory_store();
  auto error = std::async(std::launch::async, [&] {
    Group group("tcp", store, 0, 2, tcp_options());
    return message_of<DistributedError>([&] { group.recv(at::empty({4}), 1).wait(); });
  });
  try {
    RawRank rank(*store->store);
    EXPECT_EQ(rank.receive().kind, Frame::Kind::asked);
    forge(rank);
  } catch (const DistributedError&) {  // rank 0 has closed the connection
  }
  return error.get();
}

TEST(ForgedMessages, MoreThanMayBeSentAheadIsRefused) {
  for (const uint64_t bytes : {SendWindow::limit + 1, uint64_t{1} << 40, ~uint64_t{0}}) {
    EXPECT_THAT(receive_from([&](RawRank& rank) { rank.send(message_frame(9, bytes)); }),
                has_all("rank 1 sent a message that cannot be received",
                        fmt::format("it has {} bytes and was not asked for", bytes), "others of 0 bytes",
                        "at most 4194304"));
  }
  std::string flood;
  const Frame empty = message_frame(9, 0);
  for (int i = 0; i < 10'000; ++i) flood.append(reinterpret_cast<const char*>(&empty), sizeof empty);
  EXPECT_THAT(receive_from([&](RawRank& rank) { rank.send(flood); }),
              has_all("it has 0 bytes and was not asked for", "others of 4194304 bytes"));
}

TEST(ForgedMessages, UnknownKindIsRefused) {
  for (const int kind : {0, 3, -1}) {
    EXPECT_THAT(receive_from([&](RawRank& rank) {
                  rank.send({static_cast<Frame::Kind>(kind), 0, 6, 0, 16});
                }),
                has_all("cannot be received", fmt::format("kind {} and size 16", kind)));
  }
}

TEST(ForgedMessages, AnnouncementsOfImpossibleNumbersAreRefused) {
  for (const uint64_t receives : {uint64_t{0}, SendWindow::most_receives + 1, ~uint64_t{0}}) {
    EXPECT_THAT(receive_from([&](RawRank& rank) {
                  rank.send({Frame::Kind::asked, 0, 0, 0, receives});
                }),
                has_all(fmt::format("kind 2 and size {};", receives), "the same version of stretto"));
  }
}

// However many bytes a message claims to have, the error is immediate and no memory is allocated.
TEST(ForgedMessages, WrongSizeIsDropped) {
  EXPECT_THAT(receive_from([](RawRank& rank) { rank.send(message_frame(0, uint64_t{1} << 62)); }),
              HasSubstr("a message of 4611686018427387904 bytes arrived; expected [4] Float"));
}

TEST(ForgedMessages, TruncationIsAnError) {
  EXPECT_THAT(receive_from([](RawRank& rank) { rank.send(std::string(11, '\1')); }),
              HasSubstr("rank 1 closed the connection"));
  EXPECT_THAT(receive_from([](RawRank& rank) {
                rank.send({Frame::Kind::message, 0, static_cast<int32_t>(at::kFloat), 0, 16});
                rank.send("half");
              }),
              HasSubstr("rank 1 closed the connection"));
}

TEST(ForgedMessages, AReceiverOfOtherTagsGetsAtMostTheLimit) {
  constexpr int messages = 20'000;
  const auto store = memory_store();
  auto error = std::async(std::launch::async, [&] {
    Group group("tcp", store, 0, 2, tcp_options());
    std::vector<Work> sends;
    for (int i = 0; i < messages; ++i) sends.push_back(group.send(at::empty({0}), 1));
    sends.push_back(group.send(at::empty({0}), 1, /*tag=*/1));
    sends.back().wait();
    return message_of<DistributedError>([&] { sends[messages - 1].wait(); });
  });
  uint64_t ahead = 0;
  {
    RawRank rank(*store->store);
    rank.send({Frame::Kind::asked, 1, 0, 0, 1});
    while (rank.receive().tag == 0) ++ahead;
  }
  EXPECT_LE(ahead * SendWindow::cost(0), SendWindow::limit);
  EXPECT_THAT(error.get(), HasSubstr("rank 1 closed the connection"));
}

}  // namespace
}  // namespace stretto::comm
