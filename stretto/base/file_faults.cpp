#include "stretto/base/file_faults.h"

#include <csignal>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

namespace stretto::file_faults {

std::atomic<State> state = State::unknown;

namespace {

// The fault of this process. It is global because the hooks are in the wrappers of system calls.
struct Armed {
  std::mutex mutex;
  Fault fault;
  int64_t calls = 0;
  std::string hit;
};

Armed& armed() {
  static Armed instance;
  return instance;
}

// REQUIRES: the lock is held.
void arm(Fault fault) {
  armed().fault = std::move(fault);
  armed().calls = 0;
  armed().hit.clear();
  state = State::on;
}

// REQUIRES: the lock is held.
void look_for_fault() {
  const auto function = reinterpret_cast<const Fault* (*)()>(::dlsym(RTLD_DEFAULT, fault_function));
  const Fault* fault = function == nullptr ? nullptr : function();
  if (fault != nullptr) {
    arm(*fault);
  } else {
    state = State::off;
  }
}

bool deletes(std::string_view call) { return call == "unlink" || call == "rmdir"; }

}  // namespace

Injection::Injection(Fault fault) {
  const std::lock_guard lock(armed().mutex);
  arm(std::move(fault));
}

Injection::~Injection() { state = State::off; }

int64_t Injection::calls() const {
  const std::lock_guard lock(armed().mutex);
  return armed().calls;
}

std::string Injection::hit() const {
  const std::lock_guard lock(armed().mutex);
  return armed().hit;
}

std::optional<Effect> next_call(const char* name, const std::filesystem::path& path) {
  const std::lock_guard lock(armed().mutex);
  if (state == State::unknown) look_for_fault();
  if (state == State::off) return std::nullopt;
  const Fault& fault = armed().fault;
  if (fault.without_exchange && std::string_view(name) == "exchange") {
    errno = EINVAL;
    return Effect::error;
  }
  if (path.native().find(fault.path) == std::string::npos) return std::nullopt;
  const int64_t call = ++armed().calls;
  const bool chosen = fault.call > 0 && (call == fault.call || (fault.sticky && call > fault.call));
  if (!chosen) return std::nullopt;
  if (armed().hit.empty()) armed().hit = fmt::format("{} {}", name, path.string());
  if (fault.effect == Effect::kill_before) die();
  if (fault.effect == Effect::error) {
    if (deletes(name) && (fault.error == ENOSPC || fault.error == EDQUOT)) return std::nullopt;
    errno = fault.error;
  }
  return fault.effect;
}

void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();  // the signal ends all threads, but not necessarily at once
}

}  // namespace stretto::file_faults
