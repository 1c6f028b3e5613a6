#pragma once

#include "stretto/compat/script_flags.h"

namespace stretto::compat {

// The flags of run_glue.py, run_ner.py, run_qa.py and run_clm.py: their own, and transformers'
// TrainingArguments.
const std::vector<Flag>& hf_flags();

// The flags without a counterpart in recipes, each with the reason.
std::vector<Flag> inert_hf_flags();

// Translate flags that depend on each other: optimizer, schedule, and the intervals of logging, evaluation
// and saving.
void use_optimizer(ScriptState& state);
void use_schedule(ScriptState& state);
void use_intervals(ScriptState& state);

}  // namespace stretto::compat
