#include "stretto/base/stream_writer.h"

#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stretto/base/fd.h"

namespace stretto {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class StreamWriterOnPipe : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    read_ = Fd(ends[0]);
    write_ = Fd(ends[1]);
  }
  // Reads until the other end is closed.
  std::string read_all() {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0; (got = ::read(read_.get(), chunk, sizeof chunk)) > 0;) {
      text.append(chunk, static_cast<size_t>(got));
    }
    return text;
  }
  std::string read_while_writing(StreamWriter& writer) {
    std::thread closer([&] {
      writer.wait_idle(10s);
      write_.reset();
    });
    std::string text = read_all();
    closer.join();
    return text;
  }

  Fd read_, write_;
};

std::string lines(int begin, int end) {
  std::string text;
  for (int i = begin; i < end; ++i) text += "line " + std::to_string(i) + " " + std::string(90, 'x') + "\n";
  return text;
}

TEST_F(StreamWriterOnPipe, WritesWhatItGets) {
  StreamWriter writer(write_.get());
  writer.write("step 1");
  writer.write("\n");
  EXPECT_EQ(read_while_writing(writer), "step 1\n");
  EXPECT_TRUE(writer.idle());
}

TEST_F(StreamWriterOnPipe, ASlowReaderGetsEverything) {
  StreamWriter writer(write_.get(), {.capacity = 10'000, .patience = 10s});
  writer.write(lines(0, 1000));  // more than the pipe and the buffer hold
  EXPECT_TRUE(writer.full());
  EXPECT_FALSE(writer.idle());
  EXPECT_EQ(read_while_writing(writer), lines(0, 1000));
  EXPECT_FALSE(writer.full());
}

TEST_F(StreamWriterOnPipe, AReaderThatReturnsIsWaitedForAtTheEnd) {
  std::thread reader([this] {
    std::this_thread::sleep_for(1500ms);  // longer than for any other reader
    EXPECT_EQ(read_all(), lines(0, 3000));
  });
  {
    StreamWriter writer(write_.get(), {.patience = 100ms, .reader_returns = true});
    for (int i = 0; i < 3000; ++i) writer.write(lines(i, i + 1));  // more than a pipe holds
  }
  write_.reset();
  reader.join();
}

TEST_F(StreamWriterOnPipe, AStalledReaderLosesTheOldestLinesAndGetsTheirNumber) {
  StreamWriter writer(write_.get(), {.capacity = 10'000, .patience = 100ms});
  writer.write(lines(0, 1000));
  std::this_thread::sleep_for(200ms);
  EXPECT_TRUE(writer.stalled());
  EXPECT_FALSE(writer.full());  // no writer must wait for it
  for (int i = 1000; i < 5000; ++i) writer.write(lines(i, i + 1));
  const std::string text = read_while_writing(writer);
  EXPECT_LT(text.size(), 100'000u);
  EXPECT_THAT(text, StartsWith("line 0 "));
  EXPECT_THAT(text, EndsWith(lines(4960, 5000)));
  EXPECT_THAT(text, HasSubstr("\nstretto: warning: "));
  EXPECT_THAT(text, HasSubstr(" were dropped here: nothing read them\n"));
}

TEST_F(StreamWriterOnPipe, LiveLinesAreDroppedFirst) {
  StreamWriter writer(write_.get(), {.capacity = 20'000, .patience = 50ms});
  const std::string filling = lines(0, 700);  // the pipe's 64 KiB, and a little
  writer.write(filling);
  std::this_thread::sleep_for(150ms);
  writer.write("first\n");
  for (int i = 0; i < 2000; ++i) writer.write("\r\033[Kstep " + std::to_string(i));
  writer.write("\nlast\n");
  const std::string text = read_while_writing(writer);
  EXPECT_THAT(text, StartsWith(filling + "first\n"));
  EXPECT_THAT(text, HasSubstr("\033[Kstep 1999\nlast\n"));
}

TEST_F(StreamWriterOnPipe, ItIsBrokenWhenTheReaderExits) {
  StreamWriter writer(write_.get());
  read_.reset();
  writer.write("lost");  // SIGPIPE would end this process
  EXPECT_TRUE(writer.wait_idle(10s));
  EXPECT_TRUE(writer.broken());
  writer.write("lost too");
  EXPECT_TRUE(writer.idle());
}

TEST_F(StreamWriterOnPipe, DestructorDoesNotWaitForAStalledReader) {
  const auto begin = std::chrono::steady_clock::now();
  {
    StreamWriter writer(write_.get(), {.capacity = 1000, .patience = 10ms});
    writer.write(lines(0, 1000));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 900ms);
  read_.reset();  // ends the thread's write
}

TEST(WithoutOverwritten, KeepsLastStates) {
  EXPECT_EQ(without_overwritten("a\rb\rc\nd\r\ne\rf"), "\rc\nd\r\n\rf");
  EXPECT_EQ(without_overwritten("plain\n"), "plain\n");
  EXPECT_EQ(without_overwritten(""), "");
}

}  // namespace
}  // namespace stretto
