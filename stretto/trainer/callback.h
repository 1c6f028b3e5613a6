#pragma once

#include <exception>
#include <functional>
#include <string>

#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/module.h"
#include "stretto/trainer/training_run.h"

namespace stretto {

// What a callback sees of a run.
struct FitContext {
  const Recipe& recipe;
  Module& module;
  Group& group;
  int64_t steps_done = 0;
  int64_t total_steps = 0;
  int64_t epoch = 0;        // of the step that was taken last, or is about to be; 0 is the first
  Metrics evaluation = {};  // what the last one measured; empty before the first
  std::function<void()> catch_up = [] {};  // brings sparse tables up to date

  // Ends the run on all ranks, whichever of them asks. Asked in fit_start, evaluation_end or epoch_end it ends there;
  // asked around a step it travels with the next reduction, and the run ends after that step.
  void stop(const std::string& why) { stop_reason = why.empty() ? "a callback asked for it" : why; }
  std::string stop_reason = {};
};

// Something that happens beside training. Every rank has one of its own, and each event comes on every rank, in this order;
// of one event, callbacks are told in the order in which they were added:
//
//   fit_start                    the state is restored, nothing has been trained yet
//     epoch_start                not again by a run that is resumed inside of the epoch
//       step_start
//       step_end                 the optimizer has stepped, or the step was left out (report.taken)
//       evaluation_end           metrics are the same on all ranks
//     epoch_end
//       checkpoint_saved         its files may still be under way (checkpoint.async); it holds the state of callbacks as
//                                they are after all of the above
//   fit_end                      the model is saved
//   exception                    in place of what would have come next, on the rank that threw
//
// At all events but exception the module's parameters are what all steps so far have made of them. A callback that seldom
// looks at them around steps can leave rows of sparse tables (nn::Embedding) behind there, which makes steps faster: see
// reads_parameters().
//
// A step that sends the run back to a checkpoint has no end; resume() comes in its place. What a callback throws ends the
// run, with its name and the event in the message.
class Callback {
 public:
  virtual ~Callback() = default;

  // For messages, and as the key of its state; one of a kind in a run.
  virtual std::string name() const = 0;

  // Whether step_start and step_end read or write the module's parameters. Where it is false for all callbacks of a run, they
  // call FitContext::catch_up() before they do so after all.
  virtual bool reads_parameters() const { return true; }

  virtual void fit_start(FitContext&) {}
  virtual void epoch_start(FitContext&) {}
  virtual void step_start(FitContext&) {}
  virtual void step_end(FitContext&, const StepReport&) {}
  virtual void evaluation_end(FitContext&, const Metrics&) {}
  virtual void epoch_end(FitContext&) {}
  virtual void checkpoint_saved(FitContext&) {}
  virtual void fit_end(FitContext&) {}
  virtual void exception(FitContext&, const std::exception&) {}

  // What must survive, under names of its own, and its return: as in tensor/state.h. Rank 0's scalars are kept.
  virtual void add_state(State&) const {}
  virtual void resume(const State&) {}
};

}  // namespace stretto
