#pragma once

#include "stretto/compat/llama_script.h"

namespace stretto::cli {

// Writes the records of `file` as texts, a JSON object {"text": ...} per line, as the fine-tuning script
// joins them: eight at equal distances to file.test, the others to file.train. Files that already have this
// content are not rewritten. Throws ConfigError if the category has too few records, DataError with the line
// for a damaged record, IoError.
void write_instruction_texts(const compat::InstructionFile& file);

}  // namespace stretto::cli
