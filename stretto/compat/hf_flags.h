#pragma once

#include "stretto/compat/script_flags.h"

namespace stretto::compat {

// The flags of run_glue.py, run_ner.py and run_qa.py: their own, and transformers' TrainingArguments.
const std::vector<Flag>& hf_flags();

// Those that recipes have nothing for, each with the reason.
std::vector<Flag> inert_hf_flags();

// The settings of flags that are read together: optimizer, schedule, and what happens at which steps.
void use_optimizer(ScriptState& state);
void use_schedule(ScriptState& state);
void use_intervals(ScriptState& state);

}  // namespace stretto::compat
