#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "stretto/trainer/callback.h"

namespace stretto {

// The callbacks of one run, told as one.
class Callbacks {
 public:
  // Throws ConfigError for two of the same name.
  Callbacks(std::vector<std::shared_ptr<Callback>> callbacks, FitContext context);

  bool empty() const { return callbacks_.empty(); }
  // Whether any of them looks at the module's parameters around steps.
  bool read_parameters() const;
  FitContext& context() { return context_; }

  // Where the run stands: its next step, or what was the last one in `epoch`.
  void place(const TrainingRun& run) { place(run, run.epoch()); }
  void place(const TrainingRun& run, int64_t epoch);

  // Tells all of `event`; `name` is what it is called in messages.
  template <class... Args>
  void tell(const char* name, void (Callback::*event)(FitContext&, Args...), Args... args) {
    for (const auto& callback : callbacks_) {
      try {
        (callback.get()->*event)(context_, args...);
      } catch (const std::exception& error) {
        rethrow(*callback, name, error);
      }
    }
  }

  // Tells all of `error`; what they throw at that is logged.
  void tell_exception(const std::exception& error);

  // Whether one of this rank has asked to stop.
  bool asks_to_stop() const { return !context_.stop_reason.empty(); }

  // Why the run is to end: the reason of the first rank that has one, at all ranks. Collective.
  std::optional<std::string> agree_on_stop();

  void add_state(State& state) const;
  void resume(const State& state);

 private:
  [[noreturn]] void rethrow(const Callback& callback, const char* event, const std::exception& error) const;

  std::vector<std::shared_ptr<Callback>> callbacks_;
  FitContext context_;
};

}  // namespace stretto
