#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/cluster/flight_recorder.h"

// Input: the flight record of a faulty rank, which the launcher reads, and a foreign file, which a rank
// opens.
namespace stretto::fuzz {
namespace {

using namespace cluster;

std::string content(int file, size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

}  // namespace

std::vector<std::string> seeds() {
  const FlightBoard board(1);
  const auto recorder = FlightRecorder::open(board.path(), 0);
  for (uint64_t i = 0; i < 5; ++i) {
    const auto call =
        recorder->start({.sequence = i, .operation = "all_reduce", .shape = "[8]", .dtype = "float32"});
    call.waiting();
    call.ended(i % 2 == 0);
  }
  const Fd file(::open(board.path().c_str(), O_RDONLY));
  return {content(file.get(), size_t{64} << 10), content(file.get(), 2048)};
}

void run(const std::string& input) {
  const FlightBoard board(1);
  {
    const Fd file(::open(board.path().c_str(), O_RDWR | O_CLOEXEC));
    // The board is sealed, so nothing is written past its end.
    struct stat status = {};
    ::fstat(file.get(), &status);
    const size_t bytes = std::min(input.size(), static_cast<size_t>(status.st_size));
    [[maybe_unused]] const ssize_t written = ::pwrite(file.get(), input.data(), bytes, 0);
  }
  const RankFlight flight = board.read(0);
  require(flight.collectives.size() <= flight_record_length, "a record has so many entries at most");
  for (const RecordedCollective& entry : flight.collectives) {
    require(entry.call.operation.size() <= 16 && entry.call.shape.size() <= 48,
            "texts end with their fields");
    require(entry.ended >= 0, "times are not negative");
    for (const char c : entry.call.group) require(c >= ' ' && c <= '~', "texts are printable");
  }

  const Fd stranger(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::write(stranger.get(), input.data(), input.size()) < 0) return;
  const auto recorder = FlightRecorder::open(fmt::format("/proc/self/fd/{}", stranger.get()), 0);
  const auto call = recorder->start({.sequence = 1, .operation = "barrier"});
  call.waiting();
  call.ended(true);
}

}  // namespace stretto::fuzz
