#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace stretto::file_faults {

// Fault injection for the writes of base/files, in tests. Its system calls that modify files (open for
// writing, write, fsync, rename, exchange, mkdir, unlink, rmdir, ftruncate) are counted from 1, and one of
// them can be made to fail, to write less than requested, or to kill the process. Off by default; then a call
// costs one relaxed load.
//
// Replaying an operation with a fault at each of its calls:
//   for (int64_t call = 1;; ++call) {
//     Injection injection({.call = call, .error = ENOSPC});
//     try { save(folder); } catch (const IoError&) {}
//     if (injection.hit().empty()) break;  // the operation has fewer calls
//     ... check the invariants; SCOPED_TRACE(injection.hit()) names the call ...
//   }
enum class Effect {
  error,        // the call is not made and fails with Fault::error
  short_write,  // a write writes half of its bytes and returns that; no effect on other calls
  torn_write,   // a write writes half of its bytes and the process dies; for other calls as kill_after
  kill_before,  // the process dies by SIGKILL instead of making the call
  kill_after,   // the process dies by SIGKILL once the call is made
};

struct Fault {
  int64_t call = 0;  // number of the call; 0: none, calls are only counted
  Effect effect = Effect::error;
  int error = EIO;        // an errno. As on a full disk, ENOSPC and EDQUOT do not affect unlink and rmdir
  bool sticky = false;    // also affects all later calls, as on a full disk
  std::string path = {};  // only calls on paths that contain this are counted and affected; empty: all
  bool without_exchange = false;  // all calls that exchange two folders fail, as some file systems lack them
};

// A program takes its fault from this function, an extern "C" const Fault* (), at its first counted call;
// null: no fault. stretto does not define the function: tests preload a library that does
// (tests/support/file_fault.h, LD_PRELOAD).
inline constexpr const char* fault_function = "stretto_file_fault";

// Sets the fault of the process for the lifetime of this object, instead of the environment's. REQUIRES:
// there is no other Injection.
class Injection {
 public:
  explicit Injection(Fault fault);
  Injection(const Injection&) = delete;
  Injection& operator=(const Injection&) = delete;
  ~Injection();

  int64_t calls() const;    // counted so far, in all threads
  std::string hit() const;  // the first call that was hit, as "fsync /folder/file"; empty: none so far
};

// --- for base/files

enum class State : uint8_t { unknown, off, on };
extern std::atomic<State> state;  // unknown until the first call has looked for a fault

// The effect on this call, if any. Counts the call; kills the process for kill_before; sets errno for
// `error`.
std::optional<Effect> next_call(const char* name, const std::filesystem::path& path);
[[noreturn]] void die();

// Runs one system call, `perform(size)`, under the fault that is set. It returns a negative number and sets
// errno on failure. `size`: the number of bytes of a write; else 0.
template <class Perform>
auto call(const char* name, const std::filesystem::path& path, size_t size, Perform perform)
    -> decltype(perform(size)) {
  if (state.load(std::memory_order_relaxed) == State::off) [[likely]]
    return perform(size);
  const std::optional<Effect> effect = next_call(name, path);
  if (effect == Effect::error) return -1;
  if (effect == Effect::short_write || effect == Effect::torn_write) size = (size + 1) / 2;
  const auto result = perform(size);
  if (effect == Effect::kill_after || effect == Effect::torn_write) die();
  return result;
}

}  // namespace stretto::file_faults
