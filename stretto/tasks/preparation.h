#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/data/dataset.h"
#include "stretto/data/similar_labels.h"
#include "stretto/models/text_model.h"
#include "stretto/text/tokenizer.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/run/evaluate.h"
#include "stretto/trainer/run/same_inputs.h"

namespace stretto {

// What tasks on model folders have in common.

// tokenizer.add_prefix_space. Unset: true for tasks on lists of words (TaskKind), for words of a byte-level vocabulary are found only with a space
// in front of them; else as the tokenizer's files say.
std::optional<bool> prefix_space(const Recipe& recipe);

// The tokenizer in `folder`, as the recipe's tokenizer section says.
text::Tokenizer load_tokenizer(const Recipe& recipe, const std::filesystem::path& folder);

// Removes what is behind the first `most` rows, sentences or questions of a file (data.max_train_samples and its like).
template <class Row>
void keep_first(std::vector<Row>& rows, const std::optional<int64_t>& most) {
  if (most && *most < std::ssize(rows)) rows.erase(rows.begin() + *most, rows.end());
}

// Throws ConfigError if the tokenizer's ids or data.max_length exceed what the model has.
void check_fit(const Recipe& recipe, const text::Tokenizer& tokenizer, const TextModel& model);

// Logs data::describe_similar_labels, once per job.
void warn_of_similar_labels(const Mesh& mesh, const std::string& file,
                            const std::map<std::string, data::LabelUse>& uses);

// The factor of each label by the recipe's list `setting`, whose elements `given` are NAME=WEIGHT; `what`: label, tag. Empty
// if `given` is. Throws ConfigError for other elements, unknown labels and those that occur twice.
std::vector<double> label_weights(const Recipe& recipe, const std::string& setting,
                                  const std::vector<std::string>& given, const std::string& what,
                                  const std::vector<std::string>& labels);

// The tokenizer and the model's configuration, to compare over ranks.
std::vector<Input> inputs_of(const text::Tokenizer& tokenizer, const TextModel& model);

// Runs `make`, which tokenises and writes the cache, on rank 0 first; the other ranks then map what it wrote.
template <class Make>
auto on_rank_0_first(const Mesh& mesh, const Make& make) {
  decltype(make()) made;
  mesh.world().rank_0_first("tokenising", [&] { made = make(); });
  return made ? std::move(made) : make();
}

// Trains `module` by the recipe. Logs it if nothing is evaluated, so that the model of the last step is kept. Collective.
FitResult fit_module(const Recipe& recipe, Module& module, const data::Dataset& train,
                     const data::Dataset* validation, const Mesh& mesh, at::Device device,
                     const std::vector<std::shared_ptr<Callback>>& callbacks);

// Throws DataError for a loss that is not finite, unless checkpoint.allow_nonfinite is set: activations may
// overflow although all weights are finite.
void require_finite_loss(const Recipe& recipe, const Metrics& metrics);

// Evaluates `module` on `dataset` for `stretto test`; rank 0 writes the number of samples and the time into test_summary.json. Collective.
Evaluation evaluate_for_test(const Recipe& recipe, Module& module, const data::Dataset& dataset,
                             const Mesh& mesh, at::Device device);

}  // namespace stretto
