#include <future>
#include <limits>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/host_team.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/comm/shared_collectives.h"
#include "stretto/comm/shared_messages.h"
#include "stretto/comm/store_handle.h"

// Forged descriptions of shared memory, by anyone who can write to the store or by a faulty rank.
namespace stretto::comm {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr size_t room = SharedCollectives::room, limit = size_t{64} << 20;
constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string refusal(const Fd& file) {
  try {
    SharedSegment::open(::getpid(), file.get(), room, limit);
  } catch (const IoError& error) {
    return error.what();
  }
  return "accepted";
}

Fd memory_file(const char* name, size_t size, int seals) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

TEST(ForgedSegment, ASealedOneOfThisUserIsMapped) {
  const auto own = SharedSegment::create(room, limit);
  const auto mapped = SharedSegment::open(::getpid(), own->fd(), room, limit);
  EXPECT_EQ(mapped->size(), own->limit());
  own->data()[room] = std::byte{7};
  EXPECT_EQ(mapped->data()[room], std::byte{7});
}

TEST(ForgedSegment, NoOtherFileIsOpened) {
  const TempFolder folder;
  const auto path = folder.path() / "secret";
  write_file_atomic(path, std::string(limit, 's'));
  EXPECT_THAT(refusal(Fd(::open(path.c_str(), O_RDWR))), HasSubstr("is not a rank's shared memory"));
  const auto fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(refusal(Fd(::open(fifo.c_str(), O_RDWR))), HasSubstr("is not a rank's shared memory"));
  // The device belongs to root, so that other users are refused before its type is checked.
  EXPECT_THAT(refusal(Fd(::open("/dev/null", O_RDWR))),
              AnyOf(HasSubstr("is not a rank's shared memory"), HasSubstr("belongs to another user")));
}

TEST(ForgedSegment, MemoryThatAnotherProcessCouldResizeIsRefused) {
  const std::string not_ours = "is not a rank's shared memory";
  EXPECT_THAT(refusal(memory_file("stretto", limit, 0)), HasSubstr(not_ours));
  EXPECT_THAT(refusal(memory_file("stretto", limit, F_SEAL_SHRINK)), HasSubstr(not_ours));
  EXPECT_THAT(refusal(memory_file("other", limit, all_seals)), HasSubstr(not_ours));
  EXPECT_THAT(refusal(memory_file("stretto", 4096, all_seals)), HasSubstr(not_ours));
  EXPECT_THAT(refusal(memory_file("stretto", limit + (size_t{2} << 20), all_seals)), HasSubstr(not_ours));
  EXPECT_EQ(refusal(memory_file("stretto", limit, all_seals)), "accepted");
}

TEST(ForgedSegment, MemoryOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  const Fd file = memory_file("stretto", limit, all_seals);
  ASSERT_EQ(::fchown(file.get(), 65534, 65534), 0);
  EXPECT_THAT(refusal(file), HasSubstr("belongs to another user"));
}

// The transport that the first rank of two chooses when the second rank's entry in the store is forged.
std::string transport_with(const std::string& key, const std::string& forged) {
  const auto handle = memory_store();
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"hosts.1", R"({"host": "h", "process": 1, "cpus": [0]})"},
        {"hosts.memory.1", R"({"refusal": "", "fd": 3, "token": 1})"},
        {"hosts.met.1", "\"\""},
        {key, forged}}) {
    handle->store->set(name, value);
  }
  GroupOptions options;
  options.host = "h";
  options.deadline = std::chrono::seconds(5);
  try {
    return exchange_hosts(*handle->store, 0, 2, options, room).refusal;
  } catch (const DistributedError& error) {
    return error.what();
  }
}

TEST(ForgedStore, AFileIsNotOpened) {
  const TempFolder folder;
  const auto path = folder.path() / "root-only";
  const std::string content(size_t{4} << 20, 's');
  write_file_atomic(path, content);
  const Fd file(::open(path.c_str(), O_RDONLY));
  const std::string here = fmt::format(R"({{"host": "h", "process": {}, "cpus": [0]}})", ::getpid());
  const auto handle = memory_store();
  handle->store->set("hosts.1", here);
  handle->store->set("hosts.memory.1", fmt::format(R"({{"refusal": "", "fd": {}, "token": 0}})", file.get()));
  handle->store->set("hosts.met.1", std::string("\"\""));
  GroupOptions options;
  options.host = "h";
  const Hosts hosts = exchange_hosts(*handle->store, 0, 2, options, room);
  EXPECT_THAT(hosts.refusal, HasSubstr("is not a rank's shared memory"));
  EXPECT_EQ(read_file(path), content);
}

TEST(ForgedStore, ForeignValuesAreReported) {
  for (const std::string& forged : {std::string("{"), std::string("[]"), std::string(R"({"host": 3})"),
                                    std::string(R"({"host": "h", "process": "x", "cpus": []})")}) {
    EXPECT_THAT(transport_with("hosts.1", forged), HasSubstr("key hosts.1 has an invalid value"));
  }
  EXPECT_THAT(transport_with("hosts.memory.1", "17"), HasSubstr("key hosts.memory.1 has an invalid value"));
  EXPECT_THAT(transport_with("hosts.met.1", "17"), HasSubstr("key hosts.met.1 has an invalid value"));
}

// `forge` acts as rank 1 of two and writes its control block directly.
std::string reduce_with(const std::function<void(SharedControl&, const CollectiveCall&)>& forge) {
  const auto handle = memory_store();
  GroupOptions options;
  options.deadline = std::chrono::seconds(20);
  const CollectiveCall call = {.operation = static_cast<int32_t>(CollectiveOperation::all_reduce),
                               .dtype = static_cast<int32_t>(at::kFloat),
                               .reduce = 0,
                               .root = 0,
                               .count = 1000};
  std::string message = "no error";
  std::promise<void> finished;
  std::thread forger([&] {
    const Hosts hosts = exchange_hosts(*handle->store, 1, 2, options, room);
    SharedControl& own = hosts.team->control(1);
    forge(own, call);
    own.ready = 1;
    announce(own);
    finished.get_future().wait();
  });
  {
    SharedCollectives collectives(exchange_hosts(*handle->store, 0, 2, options, room).team);
    const Tensor tensor = at::ones({1000});
    try {
      collectives.wait(collectives.start({.call = call,
                                          .shown = tensor.const_data_ptr(),
                                          .taken = tensor.mutable_data_ptr(),
                                          .keep = {tensor}}),
                       std::chrono::seconds(20));
    } catch (const DistributedError& error) {
      message = error.what();
    }
    finished.set_value();
    forger.join();
  }
  return message;
}

TEST(ForgedControl, OffsetsAreCheckedAgainstTheSegment) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t offset : {most, most - 4095, int64_t{1} << 46, int64_t{0}, int64_t{64},
                               static_cast<int64_t>(SharedCollectives::slots_begin) + 1}) {
    EXPECT_THAT(reduce_with([&](SharedControl& own, const CollectiveCall& call) {
                  own.entries[0] = {.call = call, .offset = offset, .first_slot = 0};
                }),
                HasSubstr("rank 1 shows data outside of its memory"))
        << offset;
  }
}

TEST(ForgedControl, UnknownCallsAreDescribed) {
  EXPECT_THAT(reduce_with([&](SharedControl& own, const CollectiveCall& call) {
                CollectiveCall other = call;
                other.operation = -7;
                other.dtype = 1 << 30;
                other.reduce = -1;
                own.entries[0] = {.call = other, .offset = -1, .first_slot = ~uint64_t{0}};
              }),
              HasSubstr("rank 1 called ? of 1000 ?, rank 0 called all_reduce of 1000 float32 (sum)"));
}

TEST(ForgedControl, MessagesAreCheckedAgainstTheSegment) {
  const auto handle = memory_store();
  GroupOptions options;
  options.deadline = std::chrono::seconds(20);
  std::promise<void> finished;
  std::thread forger([&] {
    const Hosts hosts = exchange_hosts(*handle->store, 1, 2, options, room);
    SharedMessage& message = hosts.team->control(1).messages[0];
    message.to = 0;
    message.dtype = static_cast<int32_t>(at::kFloat);
    message.bytes = 4000;
    message.offset = std::numeric_limits<uint64_t>::max() - 100;
    message.state = SharedMessage::State::posted;
    finished.get_future().wait();
  });
  const Hosts hosts = exchange_hosts(*handle->store, 0, 2, options, room);
  SharedMessages messages(*hosts.team);
  const Tensor tensor = at::zeros({1000});
  try {
    while (!messages.take(1, 0, 0, tensor)) std::this_thread::yield();
    ADD_FAILURE() << "read";
  } catch (const DistributedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 sent 4000 bytes outside of its memory"));
  }
  finished.set_value();
  forger.join();
}

TEST(UnwoundGroup, IsDistinguishedFromOneThatLeft) {
  std::string message;
  const auto run = [&] {
    run_rank_threads(2, [&](Group& group) {
      group.barrier();
      if (group.rank() == 1) throw ConfigError("the first mistake");
      try {
        group.barrier();
      } catch (const DistributedError& error) {
        message = error.what();
      }
    });
  };
  EXPECT_THROW(run(), ConfigError);
  EXPECT_THAT(message, HasSubstr(fmt::format("rank 1 (process {}) has failed", ::getpid())));
}

}  // namespace
}  // namespace stretto::comm
