#pragma once

#include "stretto/tasks/task.h"

namespace stretto::tasks {

// The task "causal-lm": trains a causal decoder on plain text, JSON Lines or a corpus of `stretto data
// tokenize`. Its test writes test_results.json and losses.jsonl.
std::unique_ptr<Task> make_causal_lm(const TaskContext& context);

}  // namespace stretto::tasks
