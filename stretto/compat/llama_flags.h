#pragma once

#include "stretto/compat/llama_script.h"
#include "stretto/compat/script_flags.h"

namespace stretto::compat {

// The flags of run_llama_nxd_ptl.py and of its fine-tuning script.
const std::vector<Flag>& llama_flags();

// The values of flags that are not given, in a run as in the plan of a job script.
struct LlamaDefaults {
  int64_t batch_size = 8;
  int64_t grad_accum_usteps = 1;
  int64_t seq_len = 4096;
  int64_t tensor_parallel_size = 2;
};

// The defaults of the script that a command line belongs to: the fine-tuning script has its own.
LlamaDefaults llama_defaults(const ScriptState& state);

// Whether the ranks of a layer divide the rows between layers, by default as in the scripts.
bool divides_rows(const ScriptState& state);

// The name of the two that is given, or the first; the value of either. Throws ConfigError if both are given
// with different values.
std::string given_name(const ScriptState& state, const std::string& name, const std::string& other);

// The value of a flag as a whole number from `least`; `unset` if it is not given. Throws ConfigError.
int64_t whole_value(const ScriptState& state, const std::string& flag, int64_t unset, int64_t least);

// The value of a flag as a whole number from 1; -1 if it is not given, or is -1. Throws ConfigError.
int64_t count_value(const ScriptState& state, const std::string& flag);

// Sets a setting from a flag, or from the flag's default in the script, which errors then name like a given
// flag.
void set_value(ScriptState& state, const std::string& flag, const std::string& setting,
               const std::string& unset);

// Translate flags that name files: the model and its tokenizer, the corpus, and the checkpoint to resume
// from.
void use_llama_model(ScriptState& state);
void use_llama_data(ScriptState& state, LlamaPlan& plan);
void use_llama_checkpoints(ScriptState& state);

}  // namespace stretto::compat
