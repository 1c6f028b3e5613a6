#include "stretto/comm/mpi/communicator.h"

#include <algorithm>
#include <array>
#include <exception>
#include <iomanip>
#include <limits>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stretto::mpi {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> failed = false;

// Initializes MPI, which is possible once per process, and finalizes it with the last communicator.
class Library {
 public:
  // Initializes MPI for concurrent calls from several threads.
  static void begin() {
    const std::lock_guard lock(mutex);
    int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE;
    MPI_Finalized(&finalized);
    if (finalized != 0)
      fail("MPI was finalized with the first groups of this process; keep a group alive until the end");
    MPI_Initialized(&initialized);
    if (initialized == 0) {
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
      ours = true;
    } else {
      MPI_Query_thread(&level);
    }
    if (level < MPI_THREAD_MULTIPLE)
      fail("this MPI library does not support calls from several threads (MPI_THREAD_MULTIPLE)");
    ++communicators;
  }
  // A process that failed does not finalize MPI; mpirun ends the others.
  static void end() {
    const std::lock_guard lock(mutex);
    if (--communicators == 0 && ours && !failed && std::uncaught_exceptions() == 0) MPI_Finalize();
  }

 private:
  static inline std::mutex mutex;
  static inline int communicators = 0;
  static inline bool ours = false;
};

// "Open MPI v4.1.4": this library's version, without what follows its first comma or line.
std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string version = text.data();
  return version.substr(0, version.find_first_of(",\n"));
}

// An MPI library that another MPI's mpirun has started counts itself as the only process.
void require_world_of(int ranks) {
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (processes >= ranks) return;
  fail("MPI counts " + std::to_string(processes) + " of these " + std::to_string(ranks) +
       " ranks: they were started by several mpirun commands, or by the mpirun of another MPI than " +
       library_version() +
       ", for which this library was built; use its mpirun, or build stretto for the other");
}

}  // namespace

void fail(const std::string& why) {
  failed = true;
  throw std::runtime_error(why);
}

void check(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  fail(std::string(call) + ": " + text.data());
}

Communicator::Communicator(c10d::Store& store, int rank, int size, std::chrono::milliseconds deadline)
    : deadline_(deadline) {
  Library::begin();
  require_world_of(size);
  int own = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  const auto key = [](int of) { return "mpi.rank." + std::to_string(of); };
  store.set(key(rank), std::to_string(own));
  std::vector<int> ranks;
  for (int of = 0; of < size; ++of) {
    store.wait({key(of)}, deadline);
    ranks.push_back(std::stoi(store.get_to_str(key(of))));
  }
  std::vector<int> sorted = ranks;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    fail("two ranks of the group have the same rank in MPI: their processes were not started by one mpirun");
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check(MPI_Group_incl(world, size, ranks.data(), &group), "MPI_Group_incl");
  check(MPI_Comm_create_group(MPI_COMM_WORLD, group, /*tag=*/0, &comm_), "MPI_Comm_create_group");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

Communicator::~Communicator() {
  if (!failed && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  Library::end();
}

namespace {

// "0.25 s"
std::string seconds_text(std::chrono::milliseconds duration) {
  std::ostringstream text;
  text << std::setprecision(std::numeric_limits<double>::digits10)
       << std::chrono::duration<double>(duration).count() << " s";
  return text.str();
}

}  // namespace

// Spins first, then sleeps between polls to leave the core to others.
void Communicator::finish(MPI_Request request, const std::atomic<bool>& closing) const {
  const auto until = Clock::now() + deadline_;
  for (int64_t turn = 0;; ++turn) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    if (closing) fail("the group was closed");
    if (turn < 200) {
      std::this_thread::yield();
      continue;
    }
    if (Clock::now() > until) fail("no answer within " + seconds_text(deadline_));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace stretto::mpi
