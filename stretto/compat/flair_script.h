#pragma once

#include <string>
#include <vector>

#include "stretto/compat/hf_script.h"

namespace stretto::compat {

// Translates the flags of the script custom_run_ner.py, which fine-tunes a transformer as a tagger with Flair
// under LightningLite: --dataset_name, --model_name_or_path, --num_epochs, --strategy, ...; or one argument
// that ends in .json, a file with the flags. Defaults are the script's. --dataset_name is a folder in the
// format of Flair's ColumnCorpus: files with train, dev (or testa, valid) and test in their names. Throws
// ConfigError, which names the flag, for unknown flags, unsupported values and missing flags; IoError.
ScriptPlan translate_flair_script(const std::vector<std::string>& arguments);

}  // namespace stretto::compat
