#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/compat/hf_script.h"

namespace stretto::compat {

// A file of instructions and answers, a JSON object per line, that the fine-tuning script reads.
struct InstructionFile {
  std::filesystem::path path;
  std::string category;  // --task: the records with this "category"; empty: all
  // The texts made from it: all records but those of `test`.
  std::filesystem::path train, test;
};

// A folder of datasets' save_to_disk() with blocks of ids, each of which must have `length` tokens.
struct SavedBlocks {
  std::filesystem::path path;
  std::string flag;  // "--data_dir blocks", for messages
  int64_t length = 0;
};

// The translation of a command line of run_llama_nxd_ptl.py.
struct LlamaPlan {
  ScriptPlan script;  // its run folder is --output_dir itself
  std::optional<InstructionFile> instructions;
  std::vector<SavedBlocks> blocks;
  bool loads_step = false;  // whether the run starts from the checkpoint of --load_step
};

// Translates the flags of run_llama_nxd_ptl.py, which pre-trains a Llama with NeuronxDistributed and
// Lightning, and those that its fine-tuning script has besides. Reads the config.json of --model_path, the
// first line of --data_dir if it is a file of records, the columns of a saved data set, and the names of the
// checkpoints of --resume_ckpt. Throws ConfigError, which names the flag, for unknown flags, unsupported
// values, flags that contradict each other, missing flags and a config.json that is none; IoError.
LlamaPlan translate_llama_script(const std::vector<std::string>& arguments);

}  // namespace stretto::compat
