#include "stretto/cluster/flight_recorder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::cluster {
namespace {

// The layout of a collective in shared memory.
struct PackedCollective {
  uint64_t sequence, group_id;
  int64_t bytes, started;
  int32_t group_rank, group_size;
  char operation[16], shape[48], dtype[16], group[32];
};
constexpr size_t packed_words = sizeof(PackedCollective) / sizeof(uint64_t);
static_assert(sizeof(PackedCollective) % sizeof(uint64_t) == 0);

// One entry of the ring, a sequence lock: `ticket` is 0 while the body is written, else the number of the
// call, from 1, that it belongs to. Readers check it before and after. They read the body with acquire, so
// that a reader that sees part of a newer body also sees the newer ticket, or 0.
struct Slot {
  std::atomic<uint64_t> ticket;
  std::atomic<int64_t> waiting_since;
  std::atomic<int64_t> ended;  // negative: it failed then
  std::array<std::atomic<uint64_t>, packed_words> body;
};

struct Page {
  std::atomic<int64_t> pid, progress;
  std::atomic<uint64_t> calls;
  std::array<Slot, flight_record_length> ring;
};

struct Header {
  std::atomic<uint64_t> magic, ranks, first_step_taken, nothing_to_do;
};
constexpr uint64_t board_magic = 0x3374667465727473;  // "stretft3", for this layout
constexpr size_t header_bytes = 64;
static_assert(sizeof(Header) <= header_bytes && alignof(Page) <= header_bytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

size_t board_bytes(size_t ranks) { return header_bytes + ranks * sizeof(Page); }

Header& header_of(void* memory) { return *static_cast<Header*>(memory); }

Page& page_of(void* memory, int rank) {
  return reinterpret_cast<Page*>(static_cast<std::byte*>(memory) + header_bytes)[rank];
}

void* map_shared(const Fd& fd, size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) throw IoError("cannot map the flight record: {}", std::strerror(errno));
  return memory;
}

template <size_t N>
void pack(char (&to)[N], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

// Reads a text that goes to terminals and JSON. A faulty rank may have left no terminating zero, and bytes
// that are not UTF-8.
template <size_t N>
std::string unpack(const char (&from)[N]) {
  std::string text(from, ::strnlen(from, N));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

int64_t magnitude(int64_t time) { return time == INT64_MIN ? INT64_MAX : std::abs(time); }

std::array<uint64_t, packed_words> pack_collective(const Collective& call, int64_t now) {
  PackedCollective packed{};
  packed.sequence = call.sequence;
  packed.group_id = call.group_id;
  packed.bytes = call.bytes;
  packed.started = now;
  packed.group_rank = call.group_rank;
  packed.group_size = call.group_size;
  pack(packed.operation, call.operation);
  pack(packed.shape, call.shape);
  pack(packed.dtype, call.dtype);
  pack(packed.group, call.group);
  std::array<uint64_t, packed_words> words{};
  std::memcpy(words.data(), &packed, sizeof packed);
  return words;
}

// Returns nullopt if the slot is empty or being written.
std::optional<std::pair<uint64_t, RecordedCollective>> read_slot(const Slot& slot) {
  const uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
  if (ticket == 0) return std::nullopt;
  std::array<uint64_t, packed_words> words{};
  for (size_t i = 0; i < packed_words; ++i) words[i] = slot.body[i].load(std::memory_order_acquire);
  const int64_t waiting_since = slot.waiting_since.load(std::memory_order_acquire);
  const int64_t ended = slot.ended.load(std::memory_order_acquire);
  if (slot.ticket.load(std::memory_order_relaxed) != ticket) return std::nullopt;

  PackedCollective packed{};
  std::memcpy(&packed, words.data(), sizeof packed);
  return std::pair(ticket, RecordedCollective{.call = {.sequence = packed.sequence,
                                                       .group_id = packed.group_id,
                                                       .group_rank = packed.group_rank,
                                                       .group_size = packed.group_size,
                                                       .operation = unpack(packed.operation),
                                                       .shape = unpack(packed.shape),
                                                       .dtype = unpack(packed.dtype),
                                                       .group = unpack(packed.group),
                                                       .bytes = packed.bytes},
                                              .started = packed.started,
                                              .waiting_since = waiting_since,
                                              .ended = magnitude(ended),
                                              .failed = ended < 0});
}

// Sets a field of the record at `path`; does nothing without a launcher.
void set(const std::string& path, std::atomic<uint64_t> Header::*field) {
  if (path.empty()) return;
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return;  // the launcher has ended: nothing reads the record
  const auto size = static_cast<size_t>(status.st_size);
  if (size < board_bytes(1)) throw IoError("{}: is not a flight record", path);
  void* memory = map_shared(fd, size);
  header_of(memory).*field = 1;
  ::munmap(memory, size);
}

}  // namespace

int64_t record_time() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

FlightBoard::FlightBoard(int ranks)
    : ranks_(ranks), fd_(::memfd_create("stretto flight record", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const size_t size = board_bytes(static_cast<size_t>(ranks));
  if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
    throw IoError("cannot allocate shared memory for the flight record: {}", std::strerror(errno));
  }
  // No rank can truncate the file while the launcher reads it.
  ::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  memory_ = map_shared(fd_, size);
  header_of(memory_).ranks = static_cast<uint64_t>(ranks);
  header_of(memory_).magic = board_magic;
}

FlightBoard::~FlightBoard() { ::munmap(memory_, board_bytes(static_cast<size_t>(ranks_))); }

std::string FlightBoard::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get()); }

int FlightBoard::pid(int rank) const { return static_cast<int>(page_of(memory_, rank).pid.load()); }

int64_t FlightBoard::progress(int rank) const { return page_of(memory_, rank).progress.load(); }

bool FlightBoard::first_step_taken() const { return header_of(memory_).first_step_taken != 0; }
bool FlightBoard::has_nothing_to_do() const { return header_of(memory_).nothing_to_do != 0; }

void note_first_step(const std::string& path) { set(path, &Header::first_step_taken); }
void note_nothing_to_do(const std::string& path) { set(path, &Header::nothing_to_do); }

RankFlight FlightBoard::read(int rank) const {
  const Page& page = page_of(memory_, rank);
  std::vector<std::pair<uint64_t, RecordedCollective>> found;
  for (const Slot& slot : page.ring) {
    if (auto entry = read_slot(slot)) found.push_back(std::move(*entry));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  RankFlight flight{.pid = pid(rank), .progress = progress(rank), .calls = page.calls.load()};
  for (auto& [ticket, collective] : found) flight.collectives.push_back(std::move(collective));
  return flight;
}

std::shared_ptr<FlightRecorder> FlightRecorder::open(const std::string& path, int rank) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) throw IoError("{}: {}", path, std::strerror(errno));
  const auto size = static_cast<size_t>(status.st_size);
  if (size < board_bytes(1)) throw IoError("{}: is not a flight record", path);

  const std::shared_ptr<FlightRecorder> recorder(new FlightRecorder);
  recorder->memory_ = map_shared(fd, size);
  recorder->size_ = size;
  recorder->rank_ = rank;
  const Header& header = header_of(recorder->memory_);
  if (header.magic != board_magic)
    throw IoError("{}: is not a flight record of this version of stretto", path);
  const uint64_t ranks = header.ranks;
  const uint64_t pages = (size - header_bytes) / sizeof(Page);
  if (rank < 0 || static_cast<uint64_t>(rank) >= ranks || ranks > pages) {
    throw IoError("{}: a flight record of {} has no page for rank {}", path,
                  counted(static_cast<int64_t>(ranks), "rank"), rank);
  }
  recorder->beat();
  page_of(recorder->memory_, rank).pid = ::getpid();
  return recorder;
}

FlightRecorder::~FlightRecorder() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

void FlightRecorder::beat() {
  page_of(memory_, rank_).progress.store(record_time(), std::memory_order_relaxed);
}

FlightRecorder::Call FlightRecorder::start(const Collective& collective) {
  Page& page = page_of(memory_, rank_);
  const int64_t now = record_time();
  const uint64_t ticket = page.calls.fetch_add(1, std::memory_order_relaxed) + 1;
  Slot& slot = page.ring[ticket % flight_record_length];
  const auto words = pack_collective(collective, now);
  slot.ticket.store(0, std::memory_order_relaxed);
  slot.waiting_since.store(0, std::memory_order_release);
  slot.ended.store(0, std::memory_order_release);
  for (size_t i = 0; i < packed_words; ++i) slot.body[i].store(words[i], std::memory_order_release);
  slot.ticket.store(ticket, std::memory_order_release);
  page.progress.store(now, std::memory_order_relaxed);
  return {shared_from_this(), ticket};
}

// After two hundred later calls the slot belongs to another call.
void FlightRecorder::Call::waiting() const {
  if (!recorder_) return;
  Slot& slot = page_of(recorder_->memory_, recorder_->rank_).ring[ticket_ % flight_record_length];
  if (slot.ticket.load(std::memory_order_relaxed) == ticket_) {
    slot.waiting_since.store(record_time(), std::memory_order_relaxed);
  }
}

void FlightRecorder::Call::ended(bool good) const {
  if (!recorder_) return;
  Page& page = page_of(recorder_->memory_, recorder_->rank_);
  Slot& slot = page.ring[ticket_ % flight_record_length];
  const int64_t now = record_time();
  if (slot.ticket.load(std::memory_order_relaxed) == ticket_) {
    slot.ended.store(good ? now : -now, std::memory_order_relaxed);
  }
  page.progress.store(now, std::memory_order_relaxed);
}

}  // namespace stretto::cluster
