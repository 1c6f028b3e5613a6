#include "stretto/trainer/api/callbacks.h"

#include <algorithm>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/comm/holders.h"
#include "stretto/trainer/run/session.h"

namespace stretto::trainer {
namespace {

std::string key_of(const Callback& callback) { return "callback." + callback.name(); }

}  // namespace

Callbacks::Callbacks(std::vector<std::shared_ptr<Callback>> callbacks, FitContext context)
    : callbacks_(std::move(callbacks)), context_(std::move(context)) {
  std::set<std::string> names;
  for (const auto& callback : callbacks_) {
    if (names.insert(callback->name()).second) continue;
    throw ConfigError("two callbacks are named \"{}\"; names must be unique in a run", callback->name());
  }
}

bool Callbacks::read_parameters() const {
  return std::ranges::any_of(callbacks_, [](const auto& callback) { return callback->reads_parameters(); });
}

bool Callbacks::read_gradients() const {
  return std::ranges::any_of(callbacks_, [](const auto& callback) { return callback->reads_gradients(); });
}

void Callbacks::set_position(const trainer::Session& session) {
  set_position(session, session.cursor.epoch());
}

void Callbacks::set_position(const trainer::Session& session, int64_t epoch) {
  context_.steps_done = session.steps_done();
  context_.total_steps = session.total_steps();
  context_.epoch = epoch;
}

void Callbacks::rethrow(const Callback& callback, const char* event, const std::exception& error) const {
  throw Error("callback {} at {}, after step {}: {}", callback.name(), event, context_.steps_done,
              error.what());
}

void Callbacks::notify_exception(const std::exception& error) {
  for (const auto& callback : callbacks_) {
    try {
      callback->exception(context_, error);
    } catch (const std::exception& another) {
      log::error("callback {} at exception: {}", callback->name(), another.what());
    }
  }
}

std::optional<std::string> Callbacks::agree_on_stop() {
  for (const std::string& reason : context_.mesh.world().all_gather_bytes(context_.stop_reason)) {
    if (!reason.empty()) return reason;
  }
  return std::nullopt;
}

void Callbacks::add_state(State& state) const {
  for (const auto& callback : callbacks_) {
    State own;
    callback->add_state(own);
    for (Entry& entry : own.tensors) {
      entry.name = key_of(*callback) + "." + entry.name;
      entry.holders = comm::holders_of(context_.mesh.world());
      state.tensors.push_back(std::move(entry));
    }
    state.scalars[key_of(*callback)] = own.scalars;
  }
}

void Callbacks::resume(const State& state) {
  for (const auto& callback : callbacks_) {
    State own;
    state.scalar(key_of(*callback)).get_to(own.scalars);
    callback->resume(own);
  }
}

}  // namespace stretto::trainer
