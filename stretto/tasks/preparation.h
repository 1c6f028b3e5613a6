#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/data/similar_labels.h"
#include "stretto/text/tokenizer.h"

namespace stretto::tasks {

// Functions that several tasks use.

// The value of tokenizer.add_prefix_space. Unset: true for tasks on lists of words (TaskKind), because a
// byte-level vocabulary contains words only with a space in front; else the setting of the tokenizer's files.
std::optional<bool> prefix_space(const Recipe& recipe);

// The tokenizer in `folder`, with the settings of the recipe's tokenizer section.
text::Tokenizer load_tokenizer(const Recipe& recipe, const std::filesystem::path& folder);

// Returns read(), which reads the file of a setting. Errors about the file begin with `label`, the setting.
template <class Read>
auto with_label(const std::string& label, const Read& read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw DataError("{}: {}", label, error.what());
  }
}

// Removes everything after the first `most` rows, sentences or questions of a file (data.max_train_samples
// and similar settings).
template <class Row>
void keep_first(std::vector<Row>& rows, const std::optional<int64_t>& most) {
  if (most && *most < std::ssize(rows)) rows.erase(rows.begin() + *most, rows.end());
}

// Logs data::describe_similar_labels, once per job.
void warn_of_similar_labels(const Mesh& mesh, const std::string& file,
                            const std::map<std::string, data::LabelUse>& uses);

// The factor of each label from the recipe's list `setting`, whose elements `given` are NAME=WEIGHT; `what`:
// label, tag. Empty if `given` is. Throws ConfigError for other elements, unknown labels and duplicates.
std::vector<double> label_weights(const Recipe& recipe, const std::string& setting,
                                  const std::vector<std::string>& given, const std::string& what,
                                  const std::vector<std::string>& labels);

}  // namespace stretto::tasks
