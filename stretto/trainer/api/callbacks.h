#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "stretto/trainer/api/callback.h"

namespace stretto {
namespace trainer {
struct Session;
}
}  // namespace stretto

namespace stretto::trainer {

// Dispatches the events of a run to its callbacks.
class Callbacks {
 public:
  // Throws ConfigError for duplicate names.
  Callbacks(std::vector<std::shared_ptr<Callback>> callbacks, FitContext context);

  bool empty() const { return callbacks_.empty(); }
  // Whether any callback reads the module's parameters in step_start or step_end.
  bool read_parameters() const;
  // Whether any callback reads gradients.
  bool read_gradients() const;
  FitContext& context() { return context_; }

  // Sets the position of the run: at its next step, or after the last step in `epoch`.
  void set_position(const trainer::Session& session);
  void set_position(const trainer::Session& session, int64_t epoch);

  // Calls `event` of all callbacks; `name` is the event's name in messages.
  template <class... Args>
  void notify(const char* name, void (Callback::*event)(FitContext&, Args...), Args... args) {
    for (const auto& callback : callbacks_) {
      try {
        (callback.get()->*event)(context_, args...);
      } catch (const std::exception& error) {
        rethrow(*callback, name, error);
      }
    }
  }

  // Calls exception() of all callbacks; logs exceptions that they throw.
  void notify_exception(const std::exception& error);

  // Whether a callback on this rank has requested a stop.
  bool stop_requested() const { return !context_.stop_reason.empty(); }

  // The stop reason of the first rank that has one, on all ranks; nullopt if there is none. Collective.
  std::optional<std::string> agree_on_stop();

  void add_state(State& state) const;
  void resume(const State& state);

 private:
  [[noreturn]] void rethrow(const Callback& callback, const char* event, const std::exception& error) const;

  std::vector<std::shared_ptr<Callback>> callbacks_;
  FitContext context_;
};

}  // namespace stretto::trainer
